//! The repository's documents, included so that `cargo test` compiles their examples.

mod sockets {
    #![doc = include_str!("../../../docs/guides/sockets.md")]
}

mod readme {
    #![doc = include_str!("../README.md")]
}
