//! Invalidation: decides if a transaction changes anything that runs in another writer's session.
//!
//! Such a transaction sets the sequence `last_invalidation`. The other writer then compares the
//! cached tasks of its own sessions with their rows before it uses them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::task::{SessionId, TaskId};
use crate::api::timestamp::Timestamp;
use crate::model::{State, Task};
use crate::postgres::working_set::applied::Applied;
use crate::postgres::working_set::contents::WorkingSet;

impl WorkingSet {
    /// Returns the time at which a session was opened, if it is open.
    pub(crate) fn opened_at(&self, session: SessionId) -> Option<Timestamp> {
        self.state().sessions.get(&session).map(|session| session.opened_at)
    }

    /// Returns true if writes changed a task that runs in a session other than `own_sessions`, or
    /// changed any of its relations.
    pub(in crate::postgres) fn invalidates(&self, applied: &Applied, own_sessions: &BTreeSet<SessionId>) -> bool {
        let (before, after) = (self.state(), applied.after());
        let runs_in_other_session =
            |task: &&Arc<Task>| task.session.is_some_and(|session| !own_sessions.contains(&session));
        // Unchanged tasks share their allocation before and after, so most comparisons are of
        // pointers.
        let is_changed = |task: &Arc<Task>| {
            !after.tasks.share(task.id).is_some_and(|now| Arc::ptr_eq(now, task))
                || relations(before, task) != relations(after, task)
                || has_new_child(task.id, before, after)
        };
        before.tasks.shared().filter(runs_in_other_session).any(is_changed)
    }
}

impl Applied {
    /// Returns the time at which a session was opened, if it is open after the writes.
    pub(crate) fn opened_at(&self, session: SessionId) -> Option<Timestamp> {
        self.after().sessions.get(&session).map(|session| session.opened_at)
    }
}

/// Returns every relation of a task except its children, for comparison: dependencies, batches and
/// its unique key.
fn relations<'s>(state: &'s State, task: &Task) -> impl PartialEq + use<'s> {
    let id = task.id;
    let all = (id, TaskId(i64::MIN))..=(id, TaskId(i64::MAX));
    let of = |relations: &'s BTreeSet<(TaskId, TaskId)>| relations.range(all.clone()).collect::<Vec<_>>();
    let key = task.new.unique.as_ref().map(|unique| (task.new.kind.clone(), unique.key.clone()));
    (
        of(&state.dependencies.dependents),
        of(&state.dependencies.open),
        of(&state.batches.items),
        state.batches.batch_of.get(&id),
        key.and_then(|key| state.keys.taken.get(&key)),
    )
}

/// Returns true if a task has got a child. Existing children never get another parent.
fn has_new_child(id: TaskId, before: &State, after: &State) -> bool {
    after.tasks.iter().any(|task| task.new.parent == Some(id) && before.tasks.share(task.id).is_none())
}
