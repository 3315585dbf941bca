//! Dependencies: which tasks wait for which, and what follows when one of them has ended.

pub(super) mod children;
pub(super) mod dependents;
