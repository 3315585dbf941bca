//! Batches: tasks that are collected and run as one.

pub(super) mod index;
pub(super) mod items;
pub(super) mod pending;
