//! The conformance suite.
//!
//! It does not run on two nodes used in turn. Its cases on notifications expect those of one
//! process, and there half of the writes are made by the other. The [sequences](super::sequences)
//! do run on them, and compare everything else.

mod direct {
    onward_testkit::conformance!(crate::postgres::fixture::Direct);
}

mod completed_by_the_function {
    onward_testkit::conformance!(ignored crate::postgres::fixture::CompletedByFunction);
}

mod through_a_pooler {
    onward_testkit::conformance!(ignored crate::postgres::fixture::ThroughPooler);
}
