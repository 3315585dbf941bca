//! Sockets on tokio, over real streams of this machine.

mod connection;
mod dropped;
mod interoperation;
mod patterns;
mod queue;
mod stress;
mod support;
