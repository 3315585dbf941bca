//! Commands that send messages to orchestrations.

pub(super) mod request;
pub(super) mod signal;
pub(super) mod update;
