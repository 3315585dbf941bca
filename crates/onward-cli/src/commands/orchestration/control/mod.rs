//! Commands that start, change and end orchestrations.

pub(super) mod cancel;
pub(super) mod delete;
pub(super) mod fork;
pub(super) mod pause;
pub(super) mod retry;
pub(super) mod start;
pub(super) mod terminate;
