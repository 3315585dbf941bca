//! The verbs, a family a file, each as a method of a transaction.

mod children;
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

pub(super) use complete::Completion;
pub(super) use session::microseconds;
