//! `onward limit …`

mod clear;
mod command;
mod list;
mod scope;
mod set;

pub(crate) use command::{Command, run};
