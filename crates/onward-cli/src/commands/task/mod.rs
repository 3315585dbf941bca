//! `onward task …`

mod bulk;
mod cancel;
mod chosen;
mod command;
mod consent;
mod count;
mod delete;
mod filter;
mod finish;
mod kill;
mod list;
mod moving;
mod named;
mod retry;
mod run_now;
mod show;
mod tree;
mod wait;
mod why;

pub(crate) use bulk::run as run_bulk;
pub(crate) use chosen::Chosen;
pub(crate) use command::{Command, run};
pub(crate) use filter::FilterArguments;
pub(crate) use show::Shown;
pub(crate) use tree::show_tree;
pub(crate) use wait::wait_for_all_within;
