//! Attempts of tasks: how they are claimed and how they end.

pub(in crate::sqlite) mod candidates;
pub(in crate::sqlite) mod claim;
pub(in crate::sqlite) mod complete;
pub(in crate::sqlite) mod end;
pub(in crate::sqlite) mod external_completion;
pub(in crate::sqlite) mod io;
pub(in crate::sqlite) mod leases;
