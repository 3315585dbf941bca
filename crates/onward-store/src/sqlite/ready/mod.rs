//! The ready index: finds the tasks that a claim may take, without reading the others.
//!
//! - A **sub-queue** has the tasks of one queue, kind and group, or of one queue and kind without a
//!   group. Orchestrations have sub-queues of their own.
//! - A **ready list** has the due tasks of one sub-queue in the order in which they are claimed.
//!   Due tasks with an affinity key have a list for each key and sub-queue instead. [`index`] holds
//!   these lists.
//! - A **sort key** is the position of a task in its list: a time made of the due time and the
//!   priority, then the task's number.
//! - A **claimable head** is the first task of a list of a group or of an affinity key. A list
//!   whose group is at its limit has none.
//! - A **head list** has the claimable heads of one queue and kind, and is numbered like their
//!   sub-queue without a group. Heads that are reserved for a session are in a head list of that
//!   session. [`claimable_heads`] holds these lists.
//! - A **fair-share tag** orders the heads of a head list before the sort key does, if groups share
//!   their queue by weight: the group with the smallest tag has the next turn.
//!
//! So a claim reads two kinds of sources: the ready lists without a group, and the head lists.
//! [`claim_order`] orders their first tasks.

pub(super) mod affinity_keys;
pub(super) mod affinity_lists;
pub(super) mod claim_order;
pub(super) mod claimable_heads;
mod fair_share_tags;
mod group_lists;
pub(super) mod index;
pub(super) mod list_cursor;
mod queue_sizes;
