//! Migrations: making the tables of a store, and bringing them up to date.

pub(super) mod migrate;
