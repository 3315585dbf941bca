//! Commands that read orchestrations and wait for them.

pub(super) mod history;
pub(super) mod list;
pub(super) mod show;
pub(super) mod status;
mod timeline;
pub(super) mod tree;
pub(super) mod wait;
pub(super) mod waiting;
