//! Runs the conformance suite on the PostgreSQL store and compares it with the specification, on a
//! server that `cargo xtask test` starts.

mod ahead;
mod bloat;
mod caller;
mod cluster;
mod completions;
mod copy;
mod disk;
mod early;
mod encryption;
mod errors;
mod failover;
mod fixture;
mod inbox;
mod invalidation;
mod isolation;
mod mailbox;
mod node_limits;
mod nodes;
mod output;
mod restart;
mod rights;
mod schemas;
mod sequences;
mod server;
mod steps;
mod sub_queues;
mod suite;
mod survive;
mod trouble;
mod upgrade;
