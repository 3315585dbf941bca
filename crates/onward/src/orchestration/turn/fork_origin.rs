//! The origin of a fork: the tag that names it, and the history that the fork takes over.

use onward_store::{Store, StoreReads, Tags, TaskId};

use super::instance::{ReplayError, read_history};
use crate::error::{Error, Result};
use crate::orchestration::replay::HistoryEvent;

/// The tag that names the origin of a fork.
pub(in crate::orchestration) const FORKED_FROM: &str = "onward.forked-from";

/// The origin of a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::orchestration) struct ForkOrigin {
    pub(in crate::orchestration) task: TaskId,
    /// The number of events that the fork takes over.
    pub(in crate::orchestration) events: u64,
    /// The generation of the origin that has them.
    pub(in crate::orchestration) generation: u32,
    /// The generation in which their operations are
    /// [numbered](crate::orchestration::replay::ReplayContext), because the origin may be a fork
    /// itself.
    pub(in crate::orchestration) numbered: u32,
}

impl ForkOrigin {
    /// Returns the origin of an orchestration, if it is a fork.
    pub(super) fn of(tags: &Tags) -> Option<Self> {
        let mut parts = tags.get(FORKED_FROM)?.split(':');
        let (task, events) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let mut generation = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
        Some(Self { task: TaskId(task), events, generation: generation(), numbered: generation() })
    }

    pub(in crate::orchestration) fn tag(self) -> String {
        let Self { task, events, generation, numbered } = self;
        format!("{}:{events}:{generation}:{numbered}", task.0)
    }

    /// Returns the events that the fork takes over.
    pub(super) async fn history(&self, store: &dyn Store) -> Result<Vec<HistoryEvent>, ReplayError> {
        let Self { task, events, generation, .. } = *self;
        let history = read_history(store, task, events).await;
        // The history was read before the generation, and generations only grow: if it is the same
        // now, the history belongs to it.
        let now = store.instance(task).await.map_err(|error| ReplayError::Unreadable(error.into()))?;
        if now.is_some_and(|now| now.generation != generation) {
            return Err(self.gone("the orchestration has continued as new"));
        }
        let mut history = history.map_err(|error| self.unread(error))?;
        history.events.truncate(usize::try_from(events).unwrap_or(usize::MAX));
        Ok(history.events)
    }

    /// Returns the error for a failed read: a history that is gone stays gone, but a failing store
    /// may recover.
    fn unread(&self, error: Error) -> ReplayError {
        if error.is_corrupt() || error.is_not_found() {
            self.gone("it was removed")
        } else {
            ReplayError::Unreadable(error)
        }
    }

    fn gone(&self, why: &str) -> ReplayError {
        ReplayError::Gone(Error::invalid(format!(
            "the history of orchestration {}, from which this one is forked, is gone: {why}; start another",
            self.task
        )))
    }
}

/// Removes the tag of a fork, and returns true if it was there.
pub(super) fn take_origin(tags: &mut Tags) -> bool {
    tags.remove(FORKED_FROM).is_some()
}

/// Returns the generation in which an orchestration numbers its operations: a fork continues from
/// its origin.
pub(in crate::orchestration) fn numbered(tags: &Tags, generation: u32) -> u32 {
    ForkOrigin::of(tags).map_or(0, |origin| origin.numbered).saturating_add(generation)
}
