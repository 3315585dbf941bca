//! Coverage: which part of a store a state holds, and what was looked for beyond it.
//!
//! The memory store holds everything, and nothing here concerns it. A store that keeps its tasks
//! elsewhere decides with the same code over a part of them: whatever a write looks for and the
//! part does not have is recorded as a [load request](load_request::LoadRequest), and the write is
//! decided again when it has been loaded. So what a store decides is what the specification says,
//! however little is loaded.

pub(super) mod check;
pub(super) mod load_request;
pub(super) mod loaded;
pub(super) mod partial_sub_queues;
