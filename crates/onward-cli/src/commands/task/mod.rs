//! `onward task …`

mod cancel;
mod command;
mod list;
mod retry;
mod show;
mod wait;
mod why;

pub(crate) use command::{Command, run};
