//! `onward tag …`

mod command;
mod keys;
mod values;

pub(crate) use command::{Command, run};
