//! Compares stores on PostgreSQL with the specification, on random sequences.

use onward_testkit::{MemoryFixture, model_based};

use super::fixture::{CompletedByFunction, Direct, InTurn, ThroughPooler};

/// The number of sequences. It is small because each read is a transaction; `cargo xtask soak
/// postgres-agrees` plays more.
const SEQUENCES: u64 = 12;

/// After each step one read in this many is compared.
const ONE_IN: usize = 12;

#[test]
fn postgres_agrees_with_the_specification() {
    model_based::run_sampled(&MemoryFixture, &Direct, SEQUENCES, ONE_IN);
}

/// Shows: B6
#[test]
fn postgres_explains_exactly_why_tasks_wait() {
    model_based::check_wait_reasons(&Direct, SEQUENCES);
}

#[test]
fn postgres_where_tasks_are_completed_by_the_function_agrees_with_the_specification() {
    model_based::run_sampled(&MemoryFixture, &CompletedByFunction, SEQUENCES, ONE_IN);
}

#[test]
fn two_nodes_used_in_turn_agree_with_the_specification() {
    model_based::run_sampled(&MemoryFixture, &InTurn, SEQUENCES, ONE_IN);
}

#[test]
fn postgres_behind_a_pooler_agrees_with_the_specification() {
    model_based::run_sampled(&MemoryFixture, &ThroughPooler, SEQUENCES, ONE_IN);
}
