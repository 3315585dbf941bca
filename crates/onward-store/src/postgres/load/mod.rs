//! Loads the rows that writes and reads need.

pub(super) mod document_row;
pub(super) mod found;
pub(super) mod loader;
pub(super) mod query;
pub(super) mod row;
