//! Observation of a socket: the events of its connections, and its counters.

pub(super) mod events;
pub(super) mod statistics;
