//! The verbs, a family a file, each as a method of a transaction.

mod aggregate;
mod bulk;
mod candidates;
mod children;
mod claim;
mod complete;
mod completion;
mod control;
mod end;
mod intervene;
mod io;
mod limit;
mod mailbox;
mod moving;
mod pausing;
mod processes;
mod queue;
pub(super) mod removal;
mod schedule;
mod session;
mod submit;
mod sweep;
mod tags;
mod turn;
mod unstarted;

pub(super) use complete::Completion;
pub(super) use session::microseconds;
