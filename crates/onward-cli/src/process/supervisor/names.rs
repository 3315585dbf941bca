//! Names by which a supervisor is known.

/// The first argument of the process. No command of this program has such a name.
pub(super) const ARGUMENT: &str = "__supervise";

/// The name of the process in listings. It does not begin with the name of this program, so that
/// `killall` and `pkill` of that name leave the process to end what the worker has left.
pub(super) const NAME: &str = "supervise-cmds";

/// Tells the supervisor in the environment of an orphan which command has started it: the id of the
/// supervisor and a number.
pub(in crate::process) const MARK: &str = "ONWARD_TREE";
