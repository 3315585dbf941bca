//! A process next to the worker that starts its commands, waits for them, and ends their processes.
//!
//! Each worker has one supervisor. It is small, so starting a command from it is cheap. It outlives
//! a worker that is killed: when the socket between the two closes, it ends every running command.
//! On Linux it inherits the orphans of commands, so it also finds a process that has left the
//! process group and the session of its command.
//!
//! [`worker`] is the worker's side, [`server`] the supervisor process, [`wire`] their messages,
//! [`tree`] the processes of a command, and [`jobs`] all running commands.

pub(super) mod jobs;
mod names;
mod server;
pub(super) mod tree;
mod wire;
mod worker;

pub(super) use names::MARK;
pub(crate) use server::serve_if_asked;
pub(super) use worker::{Child, Spawner};
