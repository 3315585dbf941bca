//! A process beside the worker that starts its commands, waits for them, and ends all that they started.
//!
//! There is one for each worker. It is small, so starting a command from it is cheap, and it outlives a worker that is killed: when the
//! socket between the two closes, it ends every command that runs. On Linux it inherits the orphans of commands, so a process that has
//! left the group and the session of its command is found, too.
//!
//! [`worker`] is the side of the worker, [`server`] the process itself, [`wire`] what they write to each other, [`tree`] the processes
//! of a command, and [`jobs`] all commands that run.

pub(super) mod jobs;
mod server;
pub(super) mod tree;
mod wire;
mod worker;

pub(crate) use server::serve_if_asked;
pub(super) use worker::{Child, Spawner};

/// The first argument of the process. No command of this program has such a name.
const ARGUMENT: &str = "__supervise";

/// The name of the process in listings. It does not begin with the name of this program, so that `killall` and `pkill` of that name
/// leave the process to end what the worker has left.
const NAME: &str = "supervise-cmds";

/// Tells the supervisor in the environment of an orphan which command has started it: the id of the supervisor and a number.
pub(super) const MARK: &str = "ONWARD_TREE";
