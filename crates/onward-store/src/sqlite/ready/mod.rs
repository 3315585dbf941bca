//! The ready index: finds tasks that can be claimed, by the [`index`] and, where tasks have groups
//! or affinity keys, by the [`claimable_heads`].

pub(super) mod affinity_keys;
pub(super) mod affinity_lists;
pub(super) mod claim_order;
pub(super) mod claimable_heads;
mod fair_share_tags;
mod group_lists;
pub(super) mod index;
pub(super) mod list_cursor;
mod queue_sizes;
