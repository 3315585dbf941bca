//! The schema of a file, `schema.sql`, and its migrations.

pub(super) mod migrate;
