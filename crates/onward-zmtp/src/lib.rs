//! A fair queue over many sources, and ZeroMQ-compatible sockets.
//!
//! [`protocol`] is ZMTP 3.1 as a state machine without I/O: bytes in, events out. It runs on any stream and any runtime, or none.

pub mod protocol;
