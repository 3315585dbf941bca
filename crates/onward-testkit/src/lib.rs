//! A test kit for stores of [Onward](https://docs.rs/onward), and for what builds on them.
//!
//! * [`conformance!`] runs every case of the suite on a store, one `#[test]` each. A store takes
//!   part through a [`Fixture`].
//! * [`model_based`] runs random sequences of writes, clock moves and restarts on two stores and
//!   compares every outcome and every read.
//! * [`FaultyStore`] is a store whose n-th change fails, before or after it took effect, or whose
//!   n-th read fails, with the error that the test chooses.
//! * [`TestStore`] is a store with a clock to move by hand and a short method for everything that a
//!   test does with it.
//!
//! ```
//! mod memory {
//!     onward_testkit::conformance!(onward_testkit::MemoryFixture);
//! }
//! # fn main() {}
//! ```
//!
//! A test of a program that builds on stores moves the clock instead of waiting, and makes the
//! store fail where it wants:
//!
//! ```
//! use std::sync::Arc;
//!
//! use onward_store::{Store, TaskState, Write};
//! use onward_testkit::{Fault, FaultyStore, MemoryFixture, Side, TestStore, task};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let store = TestStore::open(&MemoryFixture).await;
//! let lease = store.running(task("mail")).await;
//! // The lease ends at once, so the task waits again.
//! store.lapse().await;
//! assert_eq!(store.state(lease.task).await, TaskState::Waiting);
//!
//! let faulty = FaultyStore::new(Arc::clone(store.inner()));
//! faulty.fail_once(1, Side::After, Fault::Io);
//! // The reply is lost, but the task is there.
//! let submit = Write::Submit(Box::new(task("mail")));
//! assert!(faulty.apply(vec![submit]).await.is_err());
//! assert_eq!(store.claim(store.session().await, 10).await.len(), 2);
//! # }
//! ```
//!
//! Everything here fails by panicking, as a test does. Use it as a dev-dependency only.

#![allow(clippy::expect_used, reason = "the suite fails by panicking, as a test does")]

#[doc(hidden)]
pub mod conformance;
mod faulty_store;
mod fixture;
pub mod model_based;
#[doc(hidden)]
pub mod mount;
#[cfg(unix)]
#[doc(hidden)]
pub mod postgres;
#[doc(hidden)]
pub mod soak;
mod test_store;

#[doc(hidden)]
pub use conformance::running;
#[doc(hidden)]
pub use conformance::suite::{RunningCase, run_case};
pub use faulty_store::{Fault, FaultyStore, Side, TIMEOUT};
#[doc(hidden)]
pub use fixture::is_missing;
pub use fixture::{
    CodecFixture, Conditions, FaultyFixture, Fixture, Inverted, MemoryFixture, Opening, StoreLocation, close_sessions,
};
pub use test_store::{TestStore, after, keyed, task};
