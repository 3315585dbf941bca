//! Mutants: broken variants of the project, kept as patches. The test that a patch names must fail
//! with it.
//!
//! A patch is the file `xtask/mutants/NAME.patch`. The text before its first `---` states what it
//! breaks, which test must fail, and why this is the fault that the test guards against.

mod ambiguous_hunks;
mod patch;
mod run;
mod table;
mod tree;

pub(crate) use patch::{by_what_they_break, check};
pub(crate) use run::{Options, run};
