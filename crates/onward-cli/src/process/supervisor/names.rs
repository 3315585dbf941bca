//! Names that identify a supervisor.

/// The first argument of the process. No command of this program has such a name.
pub(super) const ARGUMENT: &str = "__supervise";

/// The name of the process in listings. It does not begin with the name of this program, so
/// `killall` and `pkill` with that name spare the process, which can then end what the worker has
/// left.
pub(super) const NAME: &str = "supervise-cmds";

/// The environment variable that identifies the command that started an orphan. Its value is the
/// process id of the supervisor and a job number.
pub(in crate::process) const MARK: &str = "ONWARD_TREE";
