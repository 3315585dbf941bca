//! A typed submit with other settings than its type's.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use onward_store::rules::retry::RetryPolicy;
use onward_store::{
    Aggregate, Dependency, Io, Name, NewTask, OnDependencyFailure, OnDuplicate, Priority, TaskId, Timestamp, Ttl,
    TtlFrom, UniqueKey, When,
};

use super::handle::Handle;
use super::typed::{Task, new_task};
use super::wait::Waiters;
use crate::engine::Engine;
use crate::error::Result;

/// A builder of a submit; `.await` submits. Errors in the settings are reported then.
#[must_use = "nothing is submitted until it is awaited"]
pub struct Submission<T: Task> {
    engine: Engine,
    task: Result<Box<NewTask>>,
    of: PhantomData<fn(T)>,
}

impl<T: Task> std::fmt::Debug for Submission<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Submission").field("task", &self.task).finish_non_exhaustive()
    }
}

impl<T: Task> Submission<T> {
    pub(crate) fn new(engine: Engine, task: &T) -> Self {
        Self { engine, task: new_task(task).map(Box::new), of: PhantomData }
    }

    fn set(mut self, set: impl FnOnce(&mut NewTask)) -> Self {
        if let Ok(task) = &mut self.task {
            set(task);
        }
        self
    }

    /// Sets the priority.
    pub fn priority(self, priority: Priority) -> Self {
        self.set(|task| task.priority = priority)
    }

    /// Sets the queue.
    pub fn queue(mut self, queue: impl AsRef<str>) -> Self {
        match Name::new(queue) {
            Ok(queue) => self.set(|task| task.queue = queue),
            Err(error) => {
                self.task = self.task.and(Err(error.into()));
                self
            }
        }
    }

    /// Sets the group with whose tasks the task shares limits.
    pub fn group(mut self, group: impl AsRef<str>) -> Self {
        match Name::new(group) {
            Ok(group) => self.set(|task| task.group = Some(group)),
            Err(error) => {
                self.task = self.task.and(Err(error.into()));
                self
            }
        }
    }

    /// Sets the affinity key: the task prefers the worker that last ran a task with the same key,
    /// for as long as its [queue](crate::queues::QueueSettings::affinity_wait) sets.
    pub fn affinity(mut self, affinity_key: impl AsRef<str>) -> Self {
        match Name::new(affinity_key) {
            Ok(affinity_key) => self.set(|task| task.affinity = Some(affinity_key)),
            Err(error) => {
                self.task = self.task.and(Err(error.into()));
                self
            }
        }
    }

    /// Sets a key that makes the task unique among the active tasks of its kind. The type's
    /// handling of duplicates and the time that the key stays taken remain.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.set(|task| match &mut task.unique {
            Some(unique) => unique.key = key.into(),
            None => task.unique = Some(unique(key.into())),
        })
    }

    /// Sets what happens when the key is taken. It has no effect without a key.
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        self.set(|task| {
            if let Some(unique) = &mut task.unique {
                unique.on_duplicate = on_duplicate;
            }
        })
    }

    /// Sets how long the key stays taken after the task has ended. It has no effect without a key.
    pub fn keep_key_for(self, time: Duration) -> Self {
        self.set(|task| {
            if let Some(unique) = &mut task.unique {
                unique.keep_for = time;
            }
        })
    }

    /// Starts the task only when these tasks have ended. Several calls add up.
    pub fn depends_on(self, tasks: impl IntoIterator<Item = TaskId>) -> Self {
        self.set(|task| task.depends_on.tasks.extend(tasks.into_iter().map(Dependency::Task)))
    }

    /// Sets what happens to the task if one that it depends on does not complete. Default: it is
    /// cancelled.
    pub fn on_dependency_failure(self, on_failure: OnDependencyFailure) -> Self {
        self.set(|task| task.depends_on.on_failure = on_failure)
    }

    /// Sets the parent: if it ends other than completed, the task is cancelled.
    pub fn parent(self, parent: TaskId) -> Self {
        self.set(|task| task.parent = Some(parent))
    }

    /// Makes the task due this long after the store accepts it.
    pub fn after(self, delay: Duration) -> Self {
        self.set(|task| task.when = When::After(delay))
    }

    /// Makes the task due at this moment, or at once if the moment has passed.
    pub fn at(self, moment: Timestamp) -> Self {
        self.set(|task| task.when = When::At(moment))
    }

    /// Sets a time to live: the task expires if it has not started this long after its submission.
    pub fn ttl(self, duration: Duration) -> Self {
        self.set(|task| task.ttl = Some(Ttl { duration, from: TtlFrom::Submission }))
    }

    /// Sets a time to live from the first attempt: no further attempt starts after it.
    pub fn ttl_from_first_attempt(self, duration: Duration) -> Self {
        self.set(|task| task.ttl = Some(Ttl { duration, from: TtlFrom::FirstAttempt }))
    }

    /// Sets the timeout of one attempt.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|task| task.timeout = Some(timeout))
    }

    /// Sets how long an attempt may run without a heartbeat of its handler
    /// ([`Context::heartbeat`](crate::Context::heartbeat)).
    pub fn heartbeat_timeout(self, timeout: Duration) -> Self {
        self.set(|task| task.heartbeat_timeout = Some(timeout))
    }

    /// Sets a moment past which no attempt runs. A task that waits for an attempt then expires. A
    /// task that failed and could not start again before it ends as failed, with its last error.
    pub fn deadline(self, deadline: Timestamp) -> Self {
        self.set(|task| task.deadline = Some(deadline))
    }

    /// Sets how long the task is kept after its end, with its result and errors. It applies however
    /// the task ends, and regardless of the retention of engines and prunes.
    pub fn retention(self, retention: Duration) -> Self {
        self.set(|task| task.retention = Some(retention))
    }

    /// Sets a tag by which the task can be found, and replaces an earlier value of the key. At most
    /// 32 keys.
    pub fn tag(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(|task| task.tags.set(key, value))
    }

    /// Sets the bytes that one attempt is expected to move.
    pub fn io(self, expected: Io) -> Self {
        self.set(|task| task.io = expected)
    }

    /// Collects the task with others of its queue, kind and group into a batch, for a handler of
    /// [batches](Engine::register_batches).
    pub fn aggregate(self, aggregate: Aggregate) -> Self {
        self.set(|task| task.aggregate = Some(aggregate))
    }

    /// Sets the retry policy.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.set(|task| task.retry = Some(policy))
    }

    /// Returns the untyped task without submitting it, for [`submit_all`](Engine::submit_all) and
    /// for `submit_in` of a store.
    ///
    /// # Errors
    /// [`is_invalid`](crate::Error::is_invalid) if a setting is invalid.
    pub fn into_new_task(self) -> Result<NewTask> {
        self.task.map(|task| *task)
    }
}

fn unique(key: String) -> UniqueKey {
    UniqueKey { key, on_duplicate: OnDuplicate::Skip, keep_for: Duration::ZERO }
}

/// Submits the task and returns a handle that waits for it.
pub(crate) async fn submit_described<O>(engine: Engine, task: Result<Box<NewTask>>) -> Result<Handle<O>> {
    let task = task?;
    // The position must be taken before the submit: the task may end before its handle exists.
    let position = Waiters::position(&engine.inner);
    let submitted = engine.submit_boxed(task).await?;
    Ok(Handle::new(engine, submitted, position))
}

impl<T: Task> IntoFuture for Submission<T> {
    type Output = Result<Handle<T::Output>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(submit_described(self.engine, self.task))
    }
}
