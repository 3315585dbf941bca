//! `onward config`

mod command;
mod explain;

pub(crate) use command::{Command, run};
