//! Flow control: [`limit_usage`] (concurrency and rates), [`fair_shares`], [`pauses`] and
//! [`queue_settings`], each also kept in memory because every claim needs it.

pub(super) mod deferred_counters;
pub(super) mod fair_shares;
mod group_limits;
pub(super) mod limit_usage;
mod next_token;
pub(super) mod pauses;
pub(super) mod queue_settings;
mod running_counts;
