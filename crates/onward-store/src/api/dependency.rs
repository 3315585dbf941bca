//! Dependencies of a task on other tasks.

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::task::TaskId;
use crate::bounds;

/// The tasks that must end before a task can start, and the effect on it if one of them does not
/// complete.
///
/// A task that depends on live tasks is [`Blocked`](crate::TaskState::Blocked) until the last of
/// them has ended, in any state. A dependency that has already ended at the submission is evaluated
/// at once. Dependencies are evaluated once: a task that is retried after its end
/// ([`Write::Retry`](crate::Write::Retry)) does not wait for them again.
///
/// ```
/// use onward_store::{Dependencies, NewTask, OnDependencyFailure, TaskId};
///
/// let mut report = NewTask::new("report")?;
/// report.depends_on = Dependencies::on([TaskId(7), TaskId(8)]);
/// report.depends_on.on_failure = OnDependencyFailure::Ignore;
/// # Ok::<(), onward_store::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Dependencies {
    /// The tasks, at most [`bounds::DEPENDENCIES`]. A task that is named twice counts as named
    /// once. Default: none.
    pub tasks: Vec<Dependency>,
    /// The effect if a dependency ends in a state other than completed. Default: cancel.
    pub on_failure: OnDependencyFailure,
}

impl Dependencies {
    /// Creates dependencies on tasks of the store. The dependent is cancelled if one of them does
    /// not complete.
    #[must_use]
    pub fn on(tasks: impl IntoIterator<Item = TaskId>) -> Self {
        Self { tasks: tasks.into_iter().map(Dependency::Task).collect(), ..Self::default() }
    }

    /// Creates dependencies on the tasks at these positions of the same batch of writes, counted
    /// from 0. The dependent is cancelled if one of them does not complete.
    #[must_use]
    pub fn on_positions(positions: impl IntoIterator<Item = usize>) -> Self {
        Self { tasks: positions.into_iter().map(Dependency::Position).collect(), ..Self::default() }
    }

    /// Returns whether there are no dependencies.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Checks that there are at most [`bounds::DEPENDENCIES`].
    pub(crate) fn check(&self, kind: &str) -> Result<()> {
        if self.tasks.len() <= bounds::DEPENDENCIES {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "a task of kind `{kind}` depends on {} tasks and the limit is {}; put a task between that depends on some of them",
            self.tasks.len(),
            bounds::DEPENDENCIES
        )))
    }
}

/// A task that another task depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependency {
    /// A task of the store, by its number.
    Task(TaskId),
    /// The task of an earlier submit in the same [`Write::All`](crate::Write::All), by the position
    /// of that submit, counted from 0. If the submit was a duplicate, this is the task that has the
    /// key.
    Position(usize),
}

/// The effect on a task if a dependency ends in a state other than completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDependencyFailure {
    /// The task is cancelled. Its last error names the dependency.
    #[default]
    Cancel,
    /// The task fails and is not retried. Its last error names the dependency.
    Fail,
    /// The task runs anyway once all dependencies have ended.
    Ignore,
}

impl OnDependencyFailure {
    #[cfg(feature = "sqlite")]
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
