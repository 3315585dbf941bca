//! A typed submit with other than the type's own settings.

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

/// A submit that is being described; `.await` submits. What is wrong with the description is told
/// then.
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

    /// How urgent it is.
    pub fn priority(self, priority: Priority) -> Self {
        self.set(|task| task.priority = priority)
    }

    /// The queue it waits in.
    pub fn queue(mut self, queue: impl AsRef<str>) -> Self {
        match Name::new(queue) {
            Ok(queue) => self.set(|task| task.queue = queue),
            Err(error) => {
                self.task = self.task.and(Err(error.into()));
                self
            }
        }
    }

    /// The group with whose tasks it shares limits.
    pub fn group(mut self, group: impl AsRef<str>) -> Self {
        match Name::new(group) {
            Ok(group) => self.set(|task| task.group = Some(group)),
            Err(error) => {
                self.task = self.task.and(Err(error.into()));
                self
            }
        }
    }

    /// The series that it belongs to: it prefers the worker that ran one of the same series last,
    /// for as long as its [queue](crate::QueueSettings::affinity_wait) says.
    pub fn affinity(mut self, series: impl AsRef<str>) -> Self {
        match Name::new(series) {
            Ok(series) => self.set(|task| task.affinity = Some(series)),
            Err(error) => {
                self.task = self.task.and(Err(error.into()));
                self
            }
        }
    }

    /// A key that makes it unique among the active tasks of its kind; keeps the type's way with
    /// duplicates, and for how long it stays taken.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.set(|task| match &mut task.unique {
            Some(unique) => unique.key = key.into(),
            None => task.unique = Some(unique(key.into())),
        })
    }

    /// What to do when the key is taken. Without a key it changes nothing.
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        self.set(|task| {
            if let Some(unique) = &mut task.unique {
                unique.on_duplicate = on_duplicate;
            }
        })
    }

    /// For how long the key stays taken after the task has ended. Without a key it changes nothing.
    pub fn keep_key_for(self, time: Duration) -> Self {
        self.set(|task| {
            if let Some(unique) = &mut task.unique {
                unique.keep_for = time;
            }
        })
    }

    /// It starts only when these tasks have ended; may be said several times.
    pub fn depends_on(self, tasks: impl IntoIterator<Item = TaskId>) -> Self {
        self.set(|task| task.depends_on.tasks.extend(tasks.into_iter().map(Dependency::Task)))
    }

    /// What becomes of it if a task on which it depends does not complete. Default: it is
    /// cancelled.
    pub fn on_dependency_failure(self, on_failure: OnDependencyFailure) -> Self {
        self.set(|task| task.depends_on.on_failure = on_failure)
    }

    /// The task whose child it is: if that ends otherwise than completed, it is cancelled.
    pub fn parent(self, parent: TaskId) -> Self {
        self.set(|task| task.parent = Some(parent))
    }

    /// It is due this long after the store accepts it.
    pub fn after(self, delay: Duration) -> Self {
        self.set(|task| task.when = When::After(delay))
    }

    /// It is due at this moment; at once if that has passed.
    pub fn at(self, moment: Timestamp) -> Self {
        self.set(|task| task.when = When::At(moment))
    }

    /// It expires if it has not started this long after its submission.
    pub fn ttl(self, duration: Duration) -> Self {
        self.set(|task| task.ttl = Some(Ttl { duration, from: TtlFrom::Submission }))
    }

    /// It expires this long after its first attempt has begun: no further attempt starts then.
    pub fn ttl_from_first_attempt(self, duration: Duration) -> Self {
        self.set(|task| task.ttl = Some(Ttl { duration, from: TtlFrom::FirstAttempt }))
    }

    /// How long one attempt may take.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|task| task.timeout = Some(timeout))
    }

    /// How long an attempt may go on without a sign of life of its handler
    /// ([`Context::heartbeat`](crate::Context::heartbeat)).
    pub fn heartbeat_timeout(self, timeout: Duration) -> Self {
        self.set(|task| task.heartbeat_timeout = Some(timeout))
    }

    /// No attempt runs past this moment: a task that waits for one then expires, and one that
    /// failed and could not start again before has failed, with its last error.
    pub fn deadline(self, deadline: Timestamp) -> Self {
        self.set(|task| task.deadline = Some(deadline))
    }

    /// How long it is kept after its end, with its result and its errors, however it ended and
    /// whatever engines and prunes are told of others.
    pub fn retention(self, retention: Duration) -> Self {
        self.set(|task| task.retention = Some(retention))
    }

    /// A tag that it can be found by; a value that the key had before is replaced. At most 32 keys.
    pub fn tag(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(|task| task.tags.set(key, value))
    }

    /// What one attempt is expected to move.
    pub fn io(self, expected: Io) -> Self {
        self.set(|task| task.io = expected)
    }

    /// It is collected with others of its queue, kind and group, and handed over with them as one,
    /// to a handler of [bundles](Engine::register_bundles).
    pub fn aggregate(self, aggregate: Aggregate) -> Self {
        self.set(|task| task.aggregate = Some(aggregate))
    }

    /// How it is tried again.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.set(|task| task.retry = Some(policy))
    }

    /// Returns what was described without submitting it: for [`submit_all`](Engine::submit_all),
    /// and for `submit_in` of a store.
    ///
    /// # Errors
    /// [`is_invalid`](crate::Error::is_invalid) with what is wrong with the description.
    pub fn into_new_task(self) -> Result<NewTask> {
        self.task.map(|task| *task)
    }
}

fn unique(key: String) -> UniqueKey {
    UniqueKey { key, on_duplicate: OnDuplicate::Skip, keep_for: Duration::ZERO }
}

/// Submits what was described, and answers a handle to wait with.
pub(crate) async fn submit_described<O>(engine: Engine, task: Result<Box<NewTask>>) -> Result<Handle<O>> {
    let task = task?;
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
