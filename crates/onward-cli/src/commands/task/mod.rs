//! `onward task …`

mod cancel;
mod command;
mod list;
mod retry;
mod show;
mod tree;
mod wait;

pub(crate) use command::{Command, run};
