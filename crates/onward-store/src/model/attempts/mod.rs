//! Attempts: how they end, and what they report.
//!
//! Every write of this module carries the [lease](crate::Lease) of its attempt, and begins with
//! `check_lease`, the **fence**: the task must run, in the lease's session, under the lease's claim
//! number. If a sweep has given the task to another attempt, the number has gone up and the write
//! is refused. So a worker that was paused, or cut off, cannot overwrite the result of its
//! successor, however late it returns. The fence protects the task's state, its checkpoint, its
//! output and the writes of the same transaction. It cannot take back an effect outside the store.
//!
//! An attempt that waits for [external completion](external_completion) has no lease. A token with
//! the claim number takes its place.

pub(super) mod attempt;
pub(super) mod external_completion;
pub(super) mod io;
pub(crate) mod output;
