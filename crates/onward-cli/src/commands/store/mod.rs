//! `onward store …`

mod backup;
mod command;
mod compact;
#[cfg(feature = "postgres")]
mod copy;
mod create;
mod migrate;
mod prune;
mod rebuild;
mod restore;

pub(crate) use command::{Command, run};
