//! A fair queue over many sources, and ZeroMQ-compatible sockets.

pub mod fair_queue;

pub use fair_queue::FairQueue;
