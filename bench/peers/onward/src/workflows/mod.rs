//! The rows of workflows.

mod graphs;
mod handlers;
mod items;
mod runs;
mod turns;
mod writing_calls;

pub(crate) use items::items;
pub(crate) use runs::in_flight;
pub(crate) use turns::{check, turns};
