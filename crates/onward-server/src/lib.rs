//! Onward for other processes.
//!
//! [`gateway`] runs the tasks of an engine in workers of any language. [`http`] puts an engine
//! behind HTTP: it returns an axum router, which the program `onward serve` puts behind a listener,
//! and which another program can mount under its own.

pub mod gateway;
#[cfg(feature = "http")]
pub mod http;
