//! The fair queue under loom: every interleaving of the reader and other threads, up to a number of
//! preemptions.
//!
//! CONTRIBUTING.md has the command. A lost wake-up shows as a deadlock, which loom reports.

mod channel;
mod demotion;
mod handles;
mod sources;
