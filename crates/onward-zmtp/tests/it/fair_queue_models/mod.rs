//! The fair queue under loom: every interleaving of the reader and others, up to a number of preemptions.
//!
//! CONTRIBUTING.md has the command. A wake that got lost shows itself as a deadlock, which loom reports.

mod channel;
mod demotion;
mod handles;
mod sources;
