//! The memory store.

onward_testkit::conformance!(onward_testkit::MemoryFixture);
