//! `onward task …`

mod bulk;
mod cancel;
mod command;
mod confirmation;
mod count;
mod delete;
mod external_completion;
mod filter;
mod follow;
mod kill;
mod list;
mod move_tasks;
mod numbers;
mod output;
mod retry;
mod run_now;
mod selection;
mod show;
mod stored_output;
mod tree;
mod wait;
mod why;

pub(crate) use bulk::run as run_bulk;
pub(crate) use command::{Command, run};
pub(crate) use filter::FilterArguments;
pub(crate) use selection::TaskSelection;
pub(crate) use show::TaskPrinter;
#[cfg(feature = "top")]
pub(crate) use stored_output::last_lines;
pub(crate) use tree::show_tree;
pub(crate) use wait::wait_for_all_within;
