//! The PostgreSQL store under the conformance suite and against the specification, on a server that `cargo xtask test` starts.
#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixture;
mod isolation;
mod nodes;

use fixture::{InSchema, InTurn, ThroughPooler};
use onward_testkit::{MemoryFixture, agreement};

// The suite is not run on two nodes used in turn: its cases on news ask for those of one process, and there half of the writes are the other's. The
// sequences below are, and compare everything else.

/// How many sequences are played: each step reads everything over a connection. `cargo xtask soak stores-agree` plays more.
const SEQUENCES: u64 = 16;

mod in_schema {
    onward_testkit::conformance!(crate::InSchema);
}

#[test]
fn postgres_agrees_with_the_specification() {
    agreement::run(&MemoryFixture, &InSchema, SEQUENCES);
}

#[test]
fn two_nodes_used_in_turn_agree_with_the_specification() {
    agreement::run(&MemoryFixture, &InTurn, SEQUENCES);
}

#[test]
fn postgres_behind_a_pooler_agrees_with_the_specification() {
    agreement::run(&MemoryFixture, &ThroughPooler, SEQUENCES);
}
