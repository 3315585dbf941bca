//! What finds tasks that can be claimed: the [`index`] and, where tasks have groups or affinity
//! keys, the [`claimable_heads`].

pub(in crate::sqlite) mod affinity_keys;
pub(in crate::sqlite) mod affinity_lists;
pub(in crate::sqlite) mod claim_order;
pub(in crate::sqlite) mod claimable_heads;
pub(in crate::sqlite) mod fair_share_tags;
pub(in crate::sqlite) mod group_lists;
pub(in crate::sqlite) mod index;
pub(in crate::sqlite) mod queue_sizes;
