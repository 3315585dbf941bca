//! The schema of a file: `schema.sql`, and what brings a file up to date.

pub(super) mod migrate;
