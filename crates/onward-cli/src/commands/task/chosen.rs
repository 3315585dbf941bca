//! Tasks named by their numbers, or chosen by a filter.

use clap::Args;
use onward_store::{TaskFilter, TaskId};

use super::filter::FilterArguments;
use crate::exit_code::wrong_usage;

/// Tasks by their numbers, or by a filter.
#[derive(Debug, Args)]
pub(crate) struct Chosen {
    /// Their numbers; instead of a filter
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
    /// Every task to which it can be done; instead of a filter
    #[arg(long)]
    all: bool,
    /// Only say how many tasks it would be done to
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do it also to more than 100 tasks without asking
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) yes: bool,
}

impl Chosen {
    /// The numbers, if tasks were named by them.
    ///
    /// # Errors
    /// Wrong usage, if a filter was given too.
    pub(crate) fn tasks(&self) -> anyhow::Result<Option<Vec<TaskId>>> {
        if self.tasks.is_empty() {
            return Ok(None);
        }
        if self.by.all || self.by.dry_run || self.by.yes || !self.by.filter.is_empty()? {
            return Err(wrong_usage(
                "numbers of tasks cannot be combined with a filter, --all, --yes or --dry-run; `onward task show` shows what they are",
            ));
        }
        Ok(Some(self.tasks.clone()))
    }
}

impl ByFilter {
    /// The filter, empty if every task is meant.
    ///
    /// # Errors
    /// Wrong usage, if nothing was given, or a filter and `--all`.
    pub(super) fn filter(&self) -> anyhow::Result<TaskFilter> {
        match (self.filter.is_empty()?, self.all) {
            (true, false) => {
                Err(wrong_usage("say which tasks: by a filter such as --kind or --tag, or --all for every one"))
            }
            (false, true) => Err(wrong_usage("--all means every task; leave it or the filter out")),
            _ => self.filter.filter(),
        }
    }
}
