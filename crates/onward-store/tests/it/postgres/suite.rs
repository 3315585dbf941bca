//! The conformance suite.
//!
//! It is not run on two nodes used in turn: its cases on news ask for those of one process, and
//! there half of the writes are the other's. The [sequences](super::sequences) are, and compare
//! everything else.

mod direct {
    onward_testkit::conformance!(crate::postgres::fixture::Direct);
}

mod completed_by_the_function {
    onward_testkit::conformance!(ignored crate::postgres::fixture::CompletedByFunction);
}

mod through_a_pooler {
    onward_testkit::conformance!(ignored crate::postgres::fixture::ThroughPooler);
}
