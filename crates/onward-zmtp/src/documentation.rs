//! The repository's documents, read here so that `cargo test` compiles the examples in them.

mod sockets {
    #![doc = include_str!("../../../docs/guides/sockets.md")]
}

mod readme {
    #![doc = include_str!("../README.md")]
}
