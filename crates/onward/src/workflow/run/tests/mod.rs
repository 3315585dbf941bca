//! Runs that are played without a store.

mod actions;
mod batches;
mod damaged;
mod ends;
mod joins;
mod oracle;
mod play;
mod properties;
mod publications;
mod random;
mod retries;
mod steps;
mod tasks;
mod undos;
