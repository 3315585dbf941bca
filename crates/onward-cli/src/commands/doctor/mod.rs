//! `onward doctor`

mod command;
mod disk;
mod finding;
#[cfg(feature = "postgres")]
mod server;
mod state;

pub(crate) use command::run;
