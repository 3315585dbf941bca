//! The state that a socket shares with the tasks of its connections.

mod backlog;
mod closing;
mod endpoints;
mod membership;
mod routing_ids;
mod state;
mod topics;

pub(super) use state::{Shared, TaskContext};
