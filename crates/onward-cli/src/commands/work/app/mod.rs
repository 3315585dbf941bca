//! Worker programs: they speak the worker protocol and run many tasks.
//!
//! [`command_line`] reads the program's words, [`child`] starts it with its socket, [`supervise`]
//! starts it again when it ends, [`run`] is the whole command.

mod child;
mod command_line;
mod reports;
mod run;
mod supervise;

pub(super) use run::run;
