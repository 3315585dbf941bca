//! `onward key …`

mod command;
mod create;
mod list;
mod revoke;

pub(crate) use command::{Command, run};
