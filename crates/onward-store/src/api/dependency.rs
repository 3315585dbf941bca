//! What a task waits for beside its time: other tasks.

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::task::TaskId;
use crate::bounds;

/// The tasks that must end before a task may start, and what becomes of it if one of them does not
/// complete.
///
/// A task that depends on live tasks is [`Blocked`](crate::TaskState::Blocked) until the last of
/// them has ended, in whatever way. What has ended already at the submission counts at once, by how
/// it ended. Dependencies are settled once: a task that was tried again after its end
/// ([`Write::Retry`](crate::Write::Retry)) waits for none of them a second time.
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
    /// Which tasks: at most [`bounds::DEPENDENCIES`]. Naming one twice is naming it once. Default:
    /// none.
    pub tasks: Vec<Dependency>,
    /// What to do when one of them ends otherwise than completed. Default: cancel.
    pub on_failure: OnDependencyFailure,
}

impl Dependencies {
    /// Depends on these tasks; is cancelled if one of them does not complete.
    #[must_use]
    pub fn on(tasks: impl IntoIterator<Item = TaskId>) -> Self {
        Self { tasks: tasks.into_iter().map(Dependency::Task).collect(), ..Self::default() }
    }

    /// Depends on the tasks at these positions of the same batch; is cancelled if one of them does
    /// not complete.
    #[must_use]
    pub fn on_members(positions: impl IntoIterator<Item = usize>) -> Self {
        Self { tasks: positions.into_iter().map(Dependency::Member).collect(), ..Self::default() }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Checks how many there are.
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

/// One task that another depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependency {
    /// A task that the store knows.
    Task(TaskId),
    /// The task that stands for an earlier submit of the same [`Write::All`](crate::Write::All):
    /// its position there, counted from 0.
    Member(usize),
}

/// What becomes of a task when one that it depends on ends otherwise than completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDependencyFailure {
    /// It is cancelled, and says why.
    #[default]
    Cancel,
    /// It fails for good, and says why.
    Fail,
    /// It runs all the same once the others have ended.
    Ignore,
}

impl OnDependencyFailure {
    #[cfg(feature = "sqlite")]
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
