//! The rate tests: submit returned to handler start, at a fixed rate into queues of different
//! weights.

mod backlog;
mod producer;
mod run;

pub(crate) use producer::asked_for;
pub(crate) use run::run;
