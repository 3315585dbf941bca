//! The rows on PostgreSQL: backlogs, whole lives, submits, how soon an idle worker starts and
//! another process hears, what a claim costs, and several nodes.

mod backlog;
mod bulk;
mod claim;
mod nodes;
mod notify;
mod wake;

pub(crate) use backlog::{drain, lives};
pub(crate) use bulk::{each_submit, submits};
pub(crate) use claim::claim_cost;
pub(crate) use nodes::{nodes, run_as_node};
pub(crate) use notify::notify;
pub(crate) use wake::wake;
