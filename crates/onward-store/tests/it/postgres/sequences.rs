//! Stores on PostgreSQL against the specification, on sequences made up at random.

use onward_testkit::{MemoryFixture, agreement};

use super::fixture::{CompletedByFunction, Direct, InTurn, ThroughPooler};

/// How many sequences are played: each read is a transaction. `cargo xtask soak postgres-agrees`
/// plays more.
const SEQUENCES: u64 = 12;

/// After each step one in so many reads is compared.
const TURNS: usize = 12;

#[test]
fn postgres_agrees_with_the_specification() {
    agreement::run_by_turns(&MemoryFixture, &Direct, SEQUENCES, TURNS);
}

/// Shows: B6
#[test]
fn postgres_explains_exactly_why_tasks_wait() {
    agreement::explain(&Direct, SEQUENCES);
}

#[test]
fn postgres_where_tasks_are_completed_by_the_function_agrees_with_the_specification() {
    agreement::run_by_turns(&MemoryFixture, &CompletedByFunction, SEQUENCES, TURNS);
}

#[test]
fn two_nodes_used_in_turn_agree_with_the_specification() {
    agreement::run_by_turns(&MemoryFixture, &InTurn, SEQUENCES, TURNS);
}

#[test]
fn postgres_behind_a_pooler_agrees_with_the_specification() {
    agreement::run_by_turns(&MemoryFixture, &ThroughPooler, SEQUENCES, TURNS);
}
