//! Attempts: how they end, and what they report.

pub(super) mod attempt;
pub(super) mod external_completion;
pub(super) mod io;
pub(crate) mod output;
