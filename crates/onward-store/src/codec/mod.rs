//! A store with encoded payloads, for example compressed or encrypted ones.

mod outcomes;
mod payload_codec;
mod reads;
mod store;
mod writes;

pub use payload_codec::PayloadCodec;
pub use store::CodecStore;
