//! The server of Onward: an engine behind HTTP.
//!
//! The crate is a library. [`http`] returns an axum router, which the program `onward serve` puts
//! behind a listener, and which another program can mount under its own.

#[cfg(feature = "http")]
pub mod http;
