//! A process beside the worker that starts its commands, waits for them, and ends their processes.
//!
//! There is one for each worker. It is small, so starting a command from it is cheap, and it
//! outlives a worker that is killed: when the socket between the two closes, it ends every command
//! that runs. On Linux it inherits the orphans of commands, so a process that has left the group
//! and the session of its command is found, too.
//!
//! [`worker`] is the side of the worker, [`server`] the process itself, [`wire`] what they write to
//! each other, [`tree`] the processes of a command, and [`jobs`] all commands that run.

pub(super) mod jobs;
mod names;
mod server;
pub(super) mod tree;
mod wire;
mod worker;

pub(super) use names::MARK;
pub(crate) use server::serve_if_asked;
pub(super) use worker::{Child, Spawner};
