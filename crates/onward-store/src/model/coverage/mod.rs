//! Coverage: the part of a store that a state has loaded, and the requests for more.
//!
//! The memory store has everything loaded, so coverage does not affect it. The PostgreSQL store
//! applies the same code to a partly loaded state. If a write looks for a missing part, the state
//! records a [load request](load_request::LoadRequest). The store loads the part and applies the
//! write again. So both decide as the specification says, regardless of how little is loaded.

pub(super) mod check;
pub(super) mod load_request;
pub(super) mod loaded;
pub(super) mod partial_sub_queues;
