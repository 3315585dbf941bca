//! The list of cases.

mod reading;
#[doc(hidden)]
pub mod running;
mod scheduling;
pub(crate) mod suite;
mod tasks;
