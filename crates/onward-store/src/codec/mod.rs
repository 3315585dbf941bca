//! Stores with encoded payloads: compressed or encrypted.

mod outcomes;
mod payload_codec;
mod reads;
mod store;
mod writes;

pub use payload_codec::PayloadCodec;
pub use store::CodecStore;
