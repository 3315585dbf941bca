//! The gateway of workers in any language.
//!
//! A worker connects, says which kinds it handles, and gives credit. The gateway runs an engine for
//! it, which claims tasks of those kinds within the credit, and whose handlers pass each task to
//! the worker and wait for its end. So limits, retries, fairness and leases are the engine's own.
//!
//! [`Gateway::serve_stream`] serves a worker on a stream, such as a socket that a child process has
//! inherited; [`Listener`] serves workers that connect over ipc and tcp.
//!
//! Of the private parts, `session` decides and does no I/O; `worker` carries out what it decides;
//! `stream` and `router` are the carriers.

pub mod bounds;
mod carriers;
mod options;
mod session;
mod worker;

pub use carriers::{ListenError, Listener};
pub use options::{Ended, Gateway, GatewayOptions};
pub use worker::history_json;
