//! Commands that replay histories with a program, and the export of histories.

pub(super) mod check;
pub(super) mod export;
mod program;
pub(super) mod query;
pub(super) mod record;
