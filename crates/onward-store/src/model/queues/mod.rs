//! Queues and kinds: names, settings and pauses.

pub(super) mod names;
pub(super) mod pauses;
pub(super) mod settings;
