//! The names of all cases, in one macro for each folder.

mod orchestrations;
mod reading;
mod scheduling;
mod tasks;
