//! The list of cases.

mod reading;
mod scheduling;
mod suite;
mod tasks;
