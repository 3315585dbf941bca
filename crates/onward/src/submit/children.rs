//! What a handler has to do with other tasks: children, siblings, its parent.

use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use onward_store::{ClaimedTask, NewTask, Priority, Submitted, TaskFilter, TaskId, TaskRecord, TtlFrom};

use super::typed::{self, Task};
use crate::error::Result;
use crate::handlers::Context;

/// Tasks that an attempt has spawned and that are submitted with its end. Nothing is made for the
/// many that spawn none.
#[derive(Debug, Default)]
pub(crate) struct Spawned(OnceLock<Mutex<Vec<NewTask>>>);

impl Spawned {
    fn add(&self, new: NewTask) {
        self.0.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner).push(new);
    }

    /// What was spawned so far; it stays, for a commit may fail and be tried again.
    pub(crate) fn all(&self) -> Vec<NewTask> {
        self.0.get().map(|spawned| spawned.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
    }
}

/// Gives a task what it has in common with the one whose handler spawns it, where its submitter
/// said nothing else: the priority, if it is the default one, the time to live, if it has none and
/// may have that one, and the tags, if it has none.
fn inherit(from: &ClaimedTask, new: &mut NewTask) {
    if new.priority == Priority::default() {
        new.priority = from.priority;
    }
    if new.ttl.is_none() {
        // What is collected cannot count from an attempt of its own.
        new.ttl = from.ttl.filter(|ttl| new.aggregate.is_none() || ttl.from == TtlFrom::Submission);
    }
    if new.tags.is_empty() {
        new.tags.clone_from(&from.tags);
    }
}

/// Children and siblings.
///
/// A **child** is cancelled with its parent if that ends otherwise than completed, and a parent may
/// [wait](crate::Failure::await_children) for its children. What a handler spawns is submitted in
/// the commit that ends its attempt well, by a result or by a wait for children, so that an attempt
/// that fails and is tried again does not spawn twice. It inherits the priority where its own is
/// the default one, and the time to live and the tags where it has none. Spawned tasks may
/// [depend](onward_store::NewTask::depends_on) on each other by their positions among all that the
/// attempt has spawned.
impl Context {
    /// Spawns a typed child.
    ///
    /// # Errors
    /// [`is_invalid`](crate::Error::is_invalid) if it cannot be written as JSON, or its queue is no
    /// name.
    #[expect(clippy::needless_pass_by_value, reason = "a spawned task is the store's")]
    pub fn spawn<T: Task>(&self, child: T) -> Result<()> {
        self.spawn_task(typed::new_task(&child)?);
        Ok(())
    }

    /// Spawns a child. What the store refuses about it is told as a permanent failure of this task.
    pub fn spawn_task(&self, child: NewTask) {
        self.attempt.spawned.add(self.child(child));
    }

    /// Spawns a child at once. If the attempt fails and is tried again, the next one may spawn it
    /// again: give it a key.
    ///
    /// # Errors
    /// As [`Engine::submit_task`](crate::Engine::submit_task).
    pub async fn spawn_now(&self, child: NewTask) -> Result<Submitted> {
        self.engine().submit_task(self.child(child)).await
    }

    /// Spawns a sibling: a child of this task's parent, or a task without one if this has none.
    pub fn spawn_sibling(&self, mut sibling: NewTask) {
        sibling.parent = self.parent();
        inherit(&self.attempt.task, &mut sibling);
        self.attempt.spawned.add(sibling);
    }

    /// The task whose child this is.
    #[must_use]
    pub fn parent(&self) -> Option<TaskId> {
        self.attempt.task.parent
    }

    /// What an earlier attempt of this task left when it began to
    /// [wait](crate::Failure::await_children) for its children: they have ended, and this attempt
    /// is to go on from there. `None` in an attempt that is to begin.
    #[must_use]
    pub fn memo(&self) -> Option<&Bytes> {
        self.attempt.task.memo.as_ref()
    }

    /// All children of this task that the store knows, live and ended, with results and errors, the
    /// oldest first. Those that an earlier attempt spawned at once are among them, and those from
    /// before somebody tried this task again.
    ///
    /// # Errors
    /// What the store reports if it cannot be read.
    pub async fn children(&self) -> Result<Vec<TaskRecord>> {
        let filter = TaskFilter { parent: Some(self.id()), with_payload: true, ..TaskFilter::default() };
        self.all_tasks(filter).await
    }

    fn child(&self, mut child: NewTask) -> NewTask {
        child.parent = Some(self.id());
        inherit(&self.attempt.task, &mut child);
        child
    }
}
