//! Flow control: [`limit_usage`] (concurrency and rates), [`fair_shares`], [`pauses`] and
//! [`queue_settings`], each kept in memory as well because every claim asks.

pub(in crate::sqlite) mod deferred_counters;
pub(in crate::sqlite) mod fair_shares;
pub(in crate::sqlite) mod limit_usage;
pub(in crate::sqlite) mod pauses;
pub(in crate::sqlite) mod queue_settings;
