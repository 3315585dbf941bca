//! Stores against the specification, on sequences made up at random.

use onward_testkit::{MemoryFixture, agreement};

/// Says nothing of the store, but that the harness plays the same sequence twice.
#[test]
fn the_memory_store_agrees_with_itself() {
    agreement::run(&MemoryFixture, &MemoryFixture);
}
