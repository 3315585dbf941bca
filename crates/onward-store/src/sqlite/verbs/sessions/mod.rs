//! Sessions of workers, and what time changes.

pub(in crate::sqlite) mod ended_processes;
pub(in crate::sqlite) mod session;
pub(in crate::sqlite) mod sweep;
