//! `onward store …`

mod backup;
mod command;
mod compact;
#[cfg(feature = "postgres")]
mod copy;
mod migrate;
mod prune;
mod restore;

pub(crate) use command::{Command, run};
