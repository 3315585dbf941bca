//! Coverage: the part of a store that a state has loaded, and the requests for more.
//!
//! The memory store has everything loaded, so coverage does not affect it. The PostgreSQL store
//! applies the same code to a partly loaded state. A read of a missing row records a [load
//! request](load_request::LoadRequest), and the result of the write is void. The store loads the
//! row and applies the write again. So both stores decide alike, however little is loaded.

pub(super) mod check;
pub(super) mod load_request;
pub(super) mod loaded;
pub(super) mod partial_sub_queues;
