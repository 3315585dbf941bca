//! Tests of the worker protocol.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod properties;
mod vectors;
