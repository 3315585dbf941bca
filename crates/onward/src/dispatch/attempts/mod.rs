//! One attempt at a task: a worker runs it and decides its end.

mod attempt_rules;
mod decide_end;
mod run_attempt;
pub(super) mod worker;

pub(super) use decide_end::failed_permanently;
