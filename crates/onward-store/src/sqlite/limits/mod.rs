//! Flow control: which tasks may start now.
//!
//! A claim compares the running tasks and the tokens of each scope with its limit, and counts
//! every start in the same transaction ([`limit_usage`]). A group at its limit has no claimable
//! heads, so claims do not examine it ([`group_limits`]). [`fair_shares`] divide the starts of a
//! queue among groups, and [`trial_shares`] do so for a claim on trial. [`pauses`] stop starts, and
//! [`queue_settings`] bound the running tasks of queues. All are cached, because every claim needs
//! them.

pub(super) mod deferred_counters;
pub(super) mod fair_shares;
mod group_limits;
pub(super) mod limit_usage;
mod next_token;
pub(super) mod pauses;
pub(super) mod queue_settings;
mod running_counts;
pub(super) mod trial_shares;
