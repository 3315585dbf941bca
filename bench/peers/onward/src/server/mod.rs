//! The rows on PostgreSQL: backlogs, round trips, submits, the delays until an idle worker starts a
//! task and until another process is notified, the cost of a claim, and several nodes.

mod backlog;
mod bulk;
mod claim;
mod nodes;
mod notify;
mod wake;

pub(crate) use backlog::{drain, round_trips};
pub(crate) use bulk::{each_submit, submits};
pub(crate) use claim::claim_cost;
pub(crate) use nodes::{nodes, run_as_node};
pub(crate) use notify::notify;
pub(crate) use wake::wake;
