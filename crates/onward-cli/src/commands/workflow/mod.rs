//! `onward workflow …`

mod check;
mod command;
mod diff;
mod files;
mod graph;
mod list;
mod put;
mod reference;
mod runs;
mod show;
mod test;

pub(crate) use command::{Command, run};
pub(crate) use files::read_valid;
pub(crate) use runs::reply_command;
