//! Tasks that belong together: dependencies, parents and children, batches.

pub(super) mod batches;
mod children;
pub(in crate::sqlite) mod dependents;
