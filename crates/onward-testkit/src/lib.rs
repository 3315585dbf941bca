//! For those who write a store for [Onward](https://docs.rs/onward), or build on one.
//!
//! * [`conformance!`] runs every case of the suite on a store, one `#[test]` each. What a store
//!   must be to be run is a [`Fixture`].
//! * [`agreement`] drives random sequences of writes, clock moves and restarts through two stores
//!   and compares every outcome and every read.
//! * [`FaultyStore`] is a store whose n-th change fails, before or after it took effect, or whose
//!   n-th read does, with the error you choose.
//! * [`Bench`] is a store with a clock to move by hand and a short word for everything a test does
//!   with it.
//!
//! ```
//! mod memory {
//!     onward_testkit::conformance!(onward_testkit::MemoryFixture);
//! }
//! # fn main() {}
//! ```
//!
//! Everything here fails by panicking, as a test does. It is never a normal dependency of a
//! program.

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
