//! Compares stores with the specification, on random sequences.

use onward_testkit::{MemoryFixture, model_based};

/// The number of sequences on stores in memory.
const MANY: u64 = 100;

/// The number of sequences on stores that create and sync files. Each takes several times as long
/// there, and CI must not take minutes. `cargo xtask soak stores-agree` plays as many on all
/// stores.
pub(crate) const SOME: u64 = 32;

/// Tests the harness rather than the store: it must play the same sequence twice.
#[test]
fn the_memory_store_agrees_with_itself() {
    model_based::run(&MemoryFixture, &MemoryFixture, SOME);
}

#[test]
fn sqlite_in_memory_agrees_with_the_specification() {
    model_based::run(&MemoryFixture, &crate::sqlite::InMemory, MANY);
}

/// The backlog moves from memory to the tables all the time.
#[test]
fn sqlite_in_memory_with_few_tasks_there_agrees_with_the_specification() {
    model_based::run(&MemoryFixture, &crate::sqlite::InMemoryFewTasks, MANY);
}

#[test]
fn sqlite_in_a_file_agrees_with_the_specification() {
    model_based::run(&MemoryFixture, &crate::sqlite::InFile(onward_store::Durability::Normal), SOME);
}

/// Tasks that are still in memory when the store is closed are read from the file again.
#[test]
fn sqlite_in_a_file_with_few_tasks_in_memory_agrees_with_the_specification() {
    model_based::run(&MemoryFixture, &crate::sqlite::InFileFewTasks, SOME);
}

#[test]
fn two_stores_on_one_file_used_in_turn_agree_with_the_specification() {
    model_based::run(&MemoryFixture, &crate::sqlite::Shared, SOME);
}

/// Shows: B6
#[test]
fn the_memory_store_explains_exactly_why_tasks_wait() {
    model_based::check_wait_reasons(&MemoryFixture, 4 * MANY);
}

/// Shows: B6
#[test]
fn sqlite_explains_exactly_why_tasks_wait() {
    model_based::check_wait_reasons(&crate::sqlite::InMemory, MANY);
    model_based::check_wait_reasons(&crate::sqlite::InMemoryFewTasks, SOME);
}
