//! The rate tests: the time from the return of a submit to the handler start, at a fixed rate into
//! queues of different weights.

mod backlog;
mod producer;
mod run;

pub(crate) use producer::asked_for;
pub(crate) use run::run;
