//! Dead letters, grouped by their cause.

mod act;
mod cause;
mod fingerprint;
mod read;

pub use cause::{DeadCause, DeadCauses};
