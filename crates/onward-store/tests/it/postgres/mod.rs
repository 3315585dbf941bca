//! The PostgreSQL store under the conformance suite and against the specification, on a server that `cargo xtask test` starts.

mod cluster;
mod encryption;
mod errors;
mod failover;
mod fixture;
mod isolation;
mod nodes;
mod restart;
mod schemas;
mod sequences;
mod server;
mod suite;
mod survive;
mod trouble;
