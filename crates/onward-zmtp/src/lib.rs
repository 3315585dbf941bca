//! A fair queue over many sources, and ZeroMQ-compatible sockets.
//!
//! * [`FairQueue`] reads from many sources (connections, channels, any [`Stream`](futures_core::Stream)) and lets none of them starve. It
//!   needs neither sockets nor a runtime; [its module](fair_queue) has a complete example, and says how it works and what it costs.
//! * [`protocol`] is ZMTP 3.1 as a state machine without I/O: bytes in, events out. It runs on any stream and any runtime, or none.

pub mod fair_queue;
pub mod protocol;

pub use fair_queue::FairQueue;
