//! Tests of the crate through its public interface.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[cfg(not(onward_loom))]
mod fair_queue;
#[cfg(onward_loom)]
mod fair_queue_models;
#[cfg(all(feature = "tokio", not(onward_loom)))]
mod socket;
#[cfg(not(onward_loom))]
mod zmtp;
