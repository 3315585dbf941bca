//! Dependencies between tasks, and their effects when a task ends.

pub(super) mod children;
pub(super) mod dependents;
