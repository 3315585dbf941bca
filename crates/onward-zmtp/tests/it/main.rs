//! Tests of the crate through what it offers.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(not(onward_loom))]
mod fair_queue;
#[cfg(onward_loom)]
mod fair_queue_models;
