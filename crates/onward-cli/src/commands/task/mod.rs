//! `onward task …`

mod cancel;
mod command;
mod count;
mod filter;
mod list;
mod retry;
mod show;
mod wait;

pub(crate) use command::{Command, run};
pub(crate) use filter::FilterArguments;
