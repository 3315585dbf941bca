//! Where a fork begins: the tag that says so, and the history that is taken over.

use onward_store::{Store, StoreReads, Tags, TaskId};

use super::instance::{ReplayError, read_history};
use crate::error::{Error, Result};
use crate::orchestration::replay::HistoryEvent;

/// The tag by which a fork knows where it begins.
pub(in crate::orchestration) const FORKED_FROM: &str = "onward.forked-from";

/// Where a fork begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::orchestration) struct ForkOrigin {
    pub(in crate::orchestration) task: TaskId,
    /// How many events it takes over.
    pub(in crate::orchestration) events: u64,
    /// Of which of the origin's generations.
    pub(in crate::orchestration) generation: u32,
    /// In which generation the operations of that are
    /// [numbered](crate::orchestration::replay::ReplayContext): the origin may be a fork itself.
    pub(in crate::orchestration) numbered: u32,
}

impl ForkOrigin {
    /// That of an orchestration, if it is a fork.
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

    /// What it takes over.
    pub(super) async fn history(&self, store: &dyn Store) -> Result<Vec<HistoryEvent>, ReplayError> {
        let Self { task, events, generation, .. } = *self;
        let history = read_history(store, task, events).await;
        // It is of this generation if that is the one now: none comes back.
        let now = store.instance(task).await.map_err(|error| ReplayError::Unreadable(error.into()))?;
        if now.is_some_and(|now| now.generation != generation) {
            return Err(self.gone("the orchestration has continued as new"));
        }
        let mut history = history.map_err(|error| self.unread(error))?;
        history.events.truncate(usize::try_from(events).unwrap_or(usize::MAX));
        Ok(history.events)
    }

    /// Why it could not be read: what is not there will not come back, and a store that fails will.
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

/// Takes the tag of a fork out; whether it is there.
pub(super) fn take_origin(tags: &mut Tags) -> bool {
    tags.remove(FORKED_FROM).is_some()
}

/// In which generation an orchestration numbers its operations: a fork goes on from where its
/// origin was.
pub(in crate::orchestration) fn numbered(tags: &Tags, generation: u32) -> u32 {
    ForkOrigin::of(tags).map_or(0, |origin| origin.numbered).saturating_add(generation)
}
