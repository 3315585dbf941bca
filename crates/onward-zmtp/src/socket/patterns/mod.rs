//! The messaging patterns: the peer or peers to which each socket type sends.

pub(super) mod local_subscriptions;
pub(super) mod publish;
pub(super) mod request_reply;
pub(super) mod round_robin;
pub(super) mod router;
pub(super) mod subscriber_table;
