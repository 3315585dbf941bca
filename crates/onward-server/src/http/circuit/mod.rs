//! Circuit breakers in front of the store: while it fails, requests fail at once.

mod breaker;
mod breaking_store;

pub(crate) use breaking_store::{BreakingStore, Circuits};
