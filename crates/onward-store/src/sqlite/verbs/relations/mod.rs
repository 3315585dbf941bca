//! Tasks that belong together: dependencies, parents and children, batches.

pub(in crate::sqlite) mod batches;
pub(in crate::sqlite) mod children;
pub(in crate::sqlite) mod dependents;
