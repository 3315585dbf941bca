//! Model-based tests: checks that two stores behave alike.
//!
//! [`run`] generates sequences of writes, clock moves and restarts. It plays each one on both
//! stores and compares every outcome and every read. A sequence on which they differ is shrunk and
//! printed. With a memory store on one side, the other store is tested against the specification.
//!
//! ```no_run
//! use onward_testkit::{MemoryFixture, agreement};
//!
//! agreement::run(&MemoryFixture, &MemoryFixture, 256);
//! ```

mod check;
mod explained;
mod orchestrations;
mod player;
mod run;
mod schedules;
mod steps;
mod strategy;
#[cfg(test)]
mod tests;
mod view;

pub use check::{Disagreement, Seen, check, difference};
pub use explained::explain;
pub use run::{run, run_by_turns};
pub use steps::{Act, Pick, Step};
pub use strategy::sequences;
