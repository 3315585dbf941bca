//! Model-based tests: checks that two stores behave alike.
//!
//! [`run`] generates sequences of writes, clock moves and restarts. It runs each one on both
//! stores and compares every outcome and every read. A sequence on which they differ is shrunk and
//! printed. With a memory store on one side, the other store is tested against the specification.
//!
//! ```no_run
//! use onward_testkit::{MemoryFixture, model_based};
//!
//! model_based::run(&MemoryFixture, &MemoryFixture, 256);
//! ```

mod check;
mod run;
mod sequence_state;
mod steps;
mod store_view;
mod strategies;
mod wait_reasons;

pub use check::{Mismatch, Trace, check, difference};
#[doc(hidden)]
pub use run::{Found, STEPS, find_difference, generator};
pub use run::{run, run_sampled};
pub use sequence_state::comparable;
pub use steps::{Operation, Pick, Step};
pub use strategies::sequences;
pub use wait_reasons::check_wait_reasons;
