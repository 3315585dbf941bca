//! `onward store …`

mod backup;
mod command;
mod compact;
mod migrate;
mod prune;
mod restore;

pub(crate) use command::{Command, run};
