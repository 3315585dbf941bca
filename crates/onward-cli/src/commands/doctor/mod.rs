//! `onward doctor`

mod command;
mod disk;
mod finding;
mod state;

pub(crate) use command::run;
