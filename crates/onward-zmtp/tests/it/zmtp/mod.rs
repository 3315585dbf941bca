//! The protocol, without I/O.

mod allocations;
mod compatibility;
mod curve;
mod faults;
mod heartbeats;
mod libzmq;
mod limits;
mod link;
mod mechanisms;
mod output;
mod pitfalls;
mod splits;
mod subscriptions;
mod transcript;
mod wire;
