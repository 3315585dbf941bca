//! `onward doctor`

mod command;
mod disk;
mod finding;
mod processes;
#[cfg(feature = "postgres")]
mod server;
mod state;

pub(crate) use command::run;
