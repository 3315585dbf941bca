//! Children, siblings and the parent of a handler's task.

use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use onward_store::{ClaimedTask, NewTask, Priority, Submitted, TaskFilter, TaskId, TaskRecord, TtlFrom};

use super::typed::{self, Task};
use crate::error::Result;
use crate::handlers::Context;

/// Tasks that an attempt has spawned and that are submitted with its end. The list is allocated
/// only when an attempt spawns.
#[derive(Debug, Default)]
pub(crate) struct Spawned(OnceLock<Mutex<Vec<NewTask>>>);

impl Spawned {
    fn add(&self, new: NewTask) {
        self.0.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner).push(new);
    }

    /// Returns the tasks spawned so far. They stay in the list because a failed commit is retried.
    pub(crate) fn all(&self) -> Vec<NewTask> {
        self.0.get().map(|spawned| spawned.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
    }
}

/// Passes settings of the spawning task to `new` where its submitter set none: the priority if it
/// is the default, the time to live if there is none and the parent's may apply, and the tags if
/// there are none.
fn inherit(from: &ClaimedTask, new: &mut NewTask) {
    if new.priority == Priority::default() {
        new.priority = from.priority;
    }
    if new.ttl.is_none() {
        // A task that is collected into a batch has no attempt of its own to count from.
        new.ttl = from.ttl.filter(|ttl| new.aggregate.is_none() || ttl.from == TtlFrom::Submission);
    }
    if new.tags.is_empty() {
        new.tags.clone_from(&from.tags);
    }
}

/// Children and siblings.
///
/// A **child** is cancelled with its parent if the parent ends other than completed, and a parent
/// may [wait](crate::Failure::await_children) for its children.
///
/// Spawned tasks are submitted in the commit that ends the attempt with a result or with a wait for
/// children. An attempt that fails and is retried therefore does not spawn twice. A spawned task
/// inherits the priority if its own is the default, and the time to live and the tags if it has
/// none. Spawned tasks may [depend](onward_store::NewTask::depends_on) on each other by their
/// positions among all tasks that the attempt has spawned.
impl Context {
    /// Spawns a typed child.
    ///
    /// # Errors
    /// [`is_invalid`](crate::Error::is_invalid) if the child cannot be written as JSON, or its
    /// queue is not a name.
    #[expect(clippy::needless_pass_by_value, reason = "a spawned task is the store's")]
    pub fn spawn<T: Task>(&self, child: T) -> Result<()> {
        self.spawn_task(typed::new_task(&child)?);
        Ok(())
    }

    /// Spawns a child. If the store rejects it, this task fails permanently.
    pub fn spawn_task(&self, child: NewTask) {
        self.attempt.spawned.add(self.child(child));
    }

    /// Spawns a child at once. If the attempt fails and is retried, the next attempt may spawn the
    /// child again: give it a key.
    ///
    /// # Errors
    /// As [`Engine::submit_task`](crate::Engine::submit_task).
    pub async fn spawn_now(&self, child: NewTask) -> Result<Submitted> {
        self.engine().submit_task(self.child(child)).await
    }

    /// Spawns children at once, in one commit: all or none. As with [`spawn_now`](Self::spawn_now),
    /// give them keys.
    ///
    /// # Errors
    /// As [`Engine::submit_all`](crate::Engine::submit_all).
    pub async fn spawn_all_now(&self, children: Vec<NewTask>) -> Result<Vec<Submitted>> {
        self.engine().submit_all(children.into_iter().map(|child| self.child(child)).collect()).await
    }

    /// Spawns a sibling: a child of this task's parent, or a task without a parent if this task has
    /// none.
    pub fn spawn_sibling(&self, mut sibling: NewTask) {
        sibling.parent = self.parent();
        inherit(&self.attempt.task, &mut sibling);
        self.attempt.spawned.add(sibling);
    }

    /// Returns the parent of this task.
    #[must_use]
    pub fn parent(&self) -> Option<TaskId> {
        self.attempt.task.parent
    }

    /// Returns the checkpoint that an earlier attempt of this task left when it began to
    /// [wait](crate::Failure::await_children) for its children. They have ended, and this attempt
    /// continues from there. `None` in an attempt that starts from the beginning.
    #[must_use]
    pub fn checkpoint_bytes(&self) -> Option<&Bytes> {
        self.attempt.task.checkpoint.as_ref()
    }

    /// Returns all children of this task that the store knows, live and ended, with results and
    /// errors, the oldest first. They include children that an earlier attempt spawned at once, and
    /// children from before the task was retried by hand.
    ///
    /// # Errors
    /// The store's error if it cannot be read.
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
