//! Every store, under one suite of cases and against one another.

mod agreement;
mod memory;
#[cfg(unix)]
mod power_loss;
mod sqlite;
