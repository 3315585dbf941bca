//! Loads the rows that writes and reads need.
//!
//! The model names what it lacks by [`LoadRequest`](crate::model::LoadRequest)s: a task by its
//! number, the first tasks of a sub-queue, a key. The [`loader`] turns the requests of one round
//! into few [queries](query), which share a round trip. [`found`] adds the rows to the working set
//! and records what is now covered. If an order is requested again, the loader reads several times
//! as many of its rows, so the number of rounds grows with the logarithm of the rows, not with
//! their number.

pub(super) mod document_row;
pub(super) mod found;
pub(super) mod loader;
pub(super) mod query;
pub(super) mod row;
