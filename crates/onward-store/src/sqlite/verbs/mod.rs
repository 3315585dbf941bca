//! The verbs, a family a file, each as a method of a transaction.

mod bulk;
mod claim;
mod complete;
mod control;
mod end;
mod processes;
mod queue;
mod removal;
mod session;
mod submit;
mod sweep;
mod tags;

pub(super) use complete::Completion;
pub(super) use session::microseconds;
