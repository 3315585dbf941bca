//! Flow control: concurrency and rates ([`limit_usage`]), [`fair_shares`], [`pauses`] and
//! [`queue_settings`]. All are cached, because every claim needs them.

pub(super) mod deferred_counters;
pub(super) mod fair_shares;
mod group_limits;
pub(super) mod limit_usage;
mod next_token;
pub(super) mod pauses;
pub(super) mod queue_settings;
mod running_counts;
