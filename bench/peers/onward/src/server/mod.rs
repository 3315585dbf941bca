//! The rows on PostgreSQL: backlogs, whole lives, submits, how soon an idle worker starts, and several nodes.

mod backlog;
mod bulk;
mod nodes;
mod wake;

pub(crate) use backlog::{drain, lives};
pub(crate) use bulk::{each_submit, submits};
pub(crate) use nodes::{nodes, run_as_node};
pub(crate) use wake::wake;
