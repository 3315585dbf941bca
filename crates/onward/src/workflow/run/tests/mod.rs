//! Runs that are played without a store.

mod ends;
mod joins;
mod play;
mod steps;
mod tasks;
