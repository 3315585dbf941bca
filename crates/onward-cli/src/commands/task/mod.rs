//! `onward task …`

mod bulk;
mod cancel;
mod chosen;
mod command;
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

pub(crate) use command::{Command, run};
pub(crate) use filter::FilterArguments;
