//! Stores against the specification, on sequences made up at random.

use onward_testkit::{MemoryFixture, agreement};

/// Says nothing of the store, but that the harness plays the same sequence twice.
#[test]
fn the_memory_store_agrees_with_itself() {
    agreement::run(&MemoryFixture, &MemoryFixture);
}

#[test]
fn sqlite_in_memory_agrees_with_the_specification() {
    agreement::run(&MemoryFixture, &crate::sqlite::InMemory);
}

#[test]
fn sqlite_in_a_file_agrees_with_the_specification() {
    agreement::run(&MemoryFixture, &crate::sqlite::InFile(onward_store::Durability::Normal));
}

#[test]
fn two_stores_on_one_file_used_in_turn_agree_with_the_specification() {
    agreement::run(&MemoryFixture, &crate::sqlite::Shared);
}

/// The move of a backlog from memory to the tables happens all the time.
#[test]
fn sqlite_in_memory_with_few_tasks_there_agrees_with_the_specification() {
    agreement::run(&MemoryFixture, &crate::sqlite::InMemoryFewTasks);
}

/// And what is left in memory is read again from the file.
#[test]
fn sqlite_in_a_file_with_few_tasks_in_memory_agrees_with_the_specification() {
    agreement::run(&MemoryFixture, &crate::sqlite::InFileFewTasks);
}
