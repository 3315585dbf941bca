//! The critical path of a graph whose nodes have times. All of it is computed from the times
//! alone, without clock and I/O.

mod compute;
#[cfg(test)]
mod tests;

pub(super) use compute::{Link, Path, TimedStep, critical_path};
