//! `onward limit …`

mod clear;
mod command;
mod list;
mod scope;
mod set;

pub(crate) use command::{Command, run};

#[cfg(feature = "top")]
pub(crate) use {list::rate_text, scope::scope_text};
