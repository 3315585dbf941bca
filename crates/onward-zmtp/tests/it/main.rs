//! Tests of the crate through what it offers.

#[cfg(not(onward_loom))]
mod fair_queue;
#[cfg(onward_loom)]
mod fair_queue_models;
