//! A fair queue over many sources, and ZeroMQ-compatible sockets.
//!
//! # The fair queue
//!
//! [`FairQueue`] reads from many sources (connections, channels, any [`Stream`](futures_core::Stream)) and lets none of them starve. It needs neither the sockets
//! nor a runtime; [its module](fair_queue) has a complete example, and says how it works and what it costs.

pub mod fair_queue;

pub use fair_queue::FairQueue;
