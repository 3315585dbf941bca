//! Every store, under one suite of cases and against one another.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod agreement;
mod memory;
#[cfg(unix)]
mod power_loss;
mod sqlite;
