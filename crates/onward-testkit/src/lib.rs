//! A test kit for stores of [Onward](https://docs.rs/onward), and for what builds on them.
//!
//! * [`conformance!`] runs every case of the suite on a store, one `#[test]` each. A store takes
//!   part through a [`Fixture`].
//! * [`agreement`] plays random sequences of writes, clock moves and restarts on two stores and
//!   compares every outcome and every read.
//! * [`FaultyStore`] is a store whose n-th change fails, before or after it took effect, or whose
//!   n-th read fails, with the error that the test chooses.
//! * [`Bench`] is a store with a clock to move by hand and a short method for everything that a
//!   test does with it.
//!
//! ```
//! mod memory {
//!     onward_testkit::conformance!(onward_testkit::MemoryFixture);
//! }
//! # fn main() {}
//! ```
//!
//! Everything here fails by panicking, as a test does. Use it as a dev-dependency only.

#![allow(clippy::expect_used, reason = "the suite fails by panicking, as a test does")]

pub mod agreement;
mod bench;
mod cases;
#[doc(hidden)]
pub mod conformance;
mod faulty;
mod fixture;
#[doc(hidden)]
pub mod mount;
#[cfg(unix)]
#[doc(hidden)]
pub mod postgres;
#[doc(hidden)]
pub mod soak;

pub use bench::{Bench, after, keyed, task};
#[doc(hidden)]
pub use cases::running;
#[doc(hidden)]
pub use cases::suite::{RunningCase, run_case};
pub use faulty::{Fault, FaultyStore, Side, TIMEOUT};
#[doc(hidden)]
pub use fixture::is_missing;
pub use fixture::{
    CodecFixture, Conditions, FaultyFixture, Fixture, Inverted, MemoryFixture, Opening, Place, close_sessions,
};
