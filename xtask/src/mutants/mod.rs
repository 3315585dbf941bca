//! Broken variants of the project, kept as patches: each must be caught by the test that it names.
//!
//! A patch lies in `xtask/mutants/NAME.patch`. Before its first `---` it says what it breaks, which
//! test must fail, and why that is the fault that the test guards against.

mod patch;
mod places;
mod run;
mod table;
mod tree;

pub(crate) use patch::{by_what_they_break, check};
pub(crate) use run::{Options, run};
