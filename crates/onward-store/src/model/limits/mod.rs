//! Limits: the number of running tasks, the rate of starts, and the shares of groups in queues.
//!
//! A limit applies to a [scope](crate::LimitScope): everything, one queue, one kind, or a group. A
//! task starts only if each of its scopes has room. A limit is enforced in one place, the claim:
//!
//! 1. [`headroom`] computes the room of a scope from its running tasks and its token bucket, by
//!    [`rules::limit::room`](crate::rules::limit::room).
//! 2. The claim skips a task if a scope has no room. Otherwise it starts the task, which
//!    [`running`] counts, and takes one from the room of each scope.
//! 3. At its end the claim takes the tokens of all its starts from the buckets.
//!
//! No other write can come between these steps, so the number of running tasks never exceeds a
//! limit. A limit that is lowered below the running tasks stops none of them: it only stops starts.
//! An end makes room, but returns no token, because a rate counts starts.

pub(super) mod fair_share;
pub(super) mod headroom;
pub(super) mod limit;
pub(super) mod running;
