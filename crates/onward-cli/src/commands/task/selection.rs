//! Tasks that the user names by number or selects by a filter.

use clap::Args;
use onward_store::{TaskFilter, TaskId};

use super::filter::FilterArguments;
use crate::exit_code::wrong_usage;

/// Tasks by number or by a filter.
#[derive(Debug, Args)]
pub(crate) struct TaskSelection {
    /// Task numbers, instead of a filter
    #[arg(value_name = "TASK")]
    tasks: Vec<TaskId>,
    #[command(flatten)]
    pub(crate) by: ByFilter,
}

/// Tasks by a filter.
#[derive(Debug, Args)]
pub(crate) struct ByFilter {
    #[command(flatten)]
    filter: FilterArguments,
    /// Every eligible task, instead of a filter
    #[arg(long)]
    all: bool,
    /// Only print how many tasks would be affected
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask before changing more than 100 tasks
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) yes: bool,
}

impl TaskSelection {
    /// Returns the numbers, if tasks were named by number.
    ///
    /// # Errors
    /// Returns a usage error if a filter was given too.
    pub(crate) fn tasks(&self) -> anyhow::Result<Option<Vec<TaskId>>> {
        if self.tasks.is_empty() {
            return Ok(None);
        }
        if self.by.all || self.by.dry_run || self.by.yes || !self.by.filter.is_empty()? {
            return Err(wrong_usage(
                "numbers of tasks cannot be combined with a filter, --all, --yes or --dry-run; `onward task show` shows these tasks",
            ));
        }
        Ok(Some(self.tasks.clone()))
    }
}

impl ByFilter {
    /// Returns the filter, which is empty for `--all`.
    ///
    /// # Errors
    /// Returns a usage error if neither a filter nor `--all` was given, or both.
    pub(super) fn filter(&self) -> anyhow::Result<TaskFilter> {
        match (self.filter.is_empty()?, self.all) {
            (true, false) => {
                Err(wrong_usage("select the tasks by a filter such as --kind or --tag, or give --all for all tasks"))
            }
            (false, true) => Err(wrong_usage("--all means every task; leave it or the filter out")),
            _ => self.filter.filter(),
        }
    }
}
