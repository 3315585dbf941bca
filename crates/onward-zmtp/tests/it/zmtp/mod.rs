//! The protocol, without I/O.

mod admission;
pub(crate) mod allocations;
mod compatibility;
mod corpora;
#[cfg(not(miri))]
mod curve;
mod faults;
mod growth;
mod heartbeats;
#[cfg(not(miri))]
pub(crate) mod libzmq;
mod limits;
pub(crate) mod link;
mod mechanisms;
mod output;
#[cfg(not(miri))]
pub(crate) mod peer;
pub(crate) mod pitfalls;
mod splits;
mod subscriptions;
mod transcript;
mod wire;
