//! Stores against the specification, on sequences made up at random.

use onward_testkit::{MemoryFixture, agreement};

/// How many sequences are played on stores in memory.
const MANY: u64 = 300;

/// How many are played where each store has files to make and to sync: there each takes several
/// times as long, and CI should not wait for minutes. `cargo xtask soak stores-agree` plays as many
/// there as elsewhere.
pub(crate) const SOME: u64 = 64;

/// Says nothing of the store, but that the harness plays the same sequence twice.
#[test]
fn the_memory_store_agrees_with_itself() {
    agreement::run(&MemoryFixture, &MemoryFixture, SOME);
}

#[test]
fn sqlite_in_memory_agrees_with_the_specification() {
    agreement::run(&MemoryFixture, &crate::sqlite::InMemory, MANY);
}

/// The move of a backlog from memory to the tables happens all the time.
#[test]
fn sqlite_in_memory_with_few_tasks_there_agrees_with_the_specification() {
    agreement::run(&MemoryFixture, &crate::sqlite::InMemoryFewTasks, MANY);
}

#[test]
fn sqlite_in_a_file_agrees_with_the_specification() {
    agreement::run(&MemoryFixture, &crate::sqlite::InFile(onward_store::Durability::Normal), SOME);
}

/// What is left in memory when the store is closed is read again from the file.
#[test]
fn sqlite_in_a_file_with_few_tasks_in_memory_agrees_with_the_specification() {
    agreement::run(&MemoryFixture, &crate::sqlite::InFileFewTasks, SOME);
}

#[test]
fn two_stores_on_one_file_used_in_turn_agree_with_the_specification() {
    agreement::run(&MemoryFixture, &crate::sqlite::Shared, SOME);
}

/// Shows: B6
#[test]
fn the_memory_store_explains_exactly_why_tasks_wait() {
    agreement::explain(&MemoryFixture, 4 * MANY);
}

/// Shows: B6
#[test]
fn sqlite_explains_exactly_why_tasks_wait() {
    agreement::explain(&crate::sqlite::InMemory, MANY);
    agreement::explain(&crate::sqlite::InMemoryFewTasks, SOME);
}
