//! `onward account`

mod change;
mod command;
mod create;
mod list;
mod password;

pub(crate) use command::{Command, run};
