//! The memory store, bare and decorated.

mod plain {
    use onward_testkit::{MemoryFixture, conformance};

    conformance!(MemoryFixture);
}

mod behind_a_codec {
    use onward_testkit::{CodecFixture, MemoryFixture, conformance};

    conformance!(CodecFixture(MemoryFixture));
}

mod behind_faults_that_never_come {
    use onward_testkit::{FaultyFixture, MemoryFixture, conformance};

    conformance!(FaultyFixture(MemoryFixture));
}
