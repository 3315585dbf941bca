//! Lists tasks.

use std::collections::VecDeque;
use std::fmt;

use futures_util::stream::{Stream, try_unfold};
use onward_store::{
    Name, Page, Priority, StoreReads, TaskFilter, TaskId, TaskPage, TaskRecord, TaskState, Timestamp, bounds,
};

use crate::engine::Engine;
use crate::error::Result;

/// A builder of a list of tasks, newest first. Made by [`Engine::tasks`]; nothing is read before
/// [`page`](Self::page), [`stream`](Self::stream), [`collect`](Self::collect),
/// [`first`](Self::first) or [`count`](Self::count).
///
/// Conditions combine: a task is listed if it meets all of them. Payloads and results are read only
/// [on request](Self::with_payload). An invalid name is an error of the read.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use onward::prelude::*;
/// use onward::TaskState;
///
/// let engine = Engine::builder().memory().open().await?;
/// engine.submit_all(vec![NewTask::new("mail")?; 3]).await?;
///
/// let mut waiting = engine.tasks().kind("mail").state(TaskState::Waiting).stream();
/// while let Some(task) = waiting.next().await? {
///     println!("{} since {}", task.id, task.submitted_at);
/// }
/// assert_eq!(engine.tasks().queue("default").count().await?, 3);
/// engine.cancel_all(engine.tasks().kind("mail").filter()?).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "nothing is read until a page, a stream or a count is asked for"]
pub struct TaskQuery {
    engine: Engine,
    filter: Result<TaskFilter>,
    page_size: usize,
}

impl fmt::Debug for TaskQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskQuery").field("filter", &self.filter).finish_non_exhaustive()
    }
}

impl Engine {
    /// Returns a list of all tasks, to which conditions may be added.
    pub fn tasks(&self) -> TaskQuery {
        TaskQuery { engine: self.clone(), filter: Ok(TaskFilter::default()), page_size: bounds::PAGE }
    }
}

/// Conditions.
impl TaskQuery {
    fn set(mut self, set: impl FnOnce(&mut TaskFilter)) -> Self {
        if let Ok(filter) = &mut self.filter {
            set(filter);
        }
        self
    }

    fn set_name(mut self, name: impl AsRef<str>, set: impl FnOnce(&mut TaskFilter, Name)) -> Self {
        match Name::new(name) {
            Ok(name) => self.set(|filter| set(filter, name)),
            Err(error) => {
                self.filter = self.filter.and(Err(error.into()));
                self
            }
        }
    }

    /// Lists tasks of this kind.
    pub fn kind(self, kind: impl AsRef<str>) -> Self {
        self.set_name(kind, |filter, kind| filter.kind = Some(kind))
    }

    /// Lists tasks in this queue.
    pub fn queue(self, queue: impl AsRef<str>) -> Self {
        self.set_name(queue, |filter, queue| filter.queue = Some(queue))
    }

    /// Lists tasks of this group.
    pub fn group(self, group: impl AsRef<str>) -> Self {
        self.set_name(group, |filter, group| filter.group = Some(group))
    }

    /// Lists tasks with this key.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.set(|filter| filter.key = Some(key.into()))
    }

    /// Lists tasks with a key that has this prefix.
    pub fn key_prefix(self, prefix: impl Into<String>) -> Self {
        self.set(|filter| filter.key_prefix = Some(prefix.into()))
    }

    /// Lists children of this task.
    pub fn parent(self, parent: TaskId) -> Self {
        self.set(|filter| filter.parent = Some(parent))
    }

    /// Lists items of this [batch](crate::task::Aggregate).
    pub fn batch(self, batch: TaskId) -> Self {
        self.set(|filter| filter.batch = Some(batch))
    }

    /// Lists tasks in this state. Several calls list tasks in one of the states.
    pub fn state(self, state: TaskState) -> Self {
        self.states([state])
    }

    /// Lists tasks in one of these states, or of those that were added before.
    pub fn states(self, states: impl IntoIterator<Item = TaskState>) -> Self {
        self.set(|filter| filter.states.extend(states))
    }

    /// Lists tasks with this tag. Several calls list tasks with all of the tags.
    pub fn tag(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(|filter| filter.tags.set(key, value))
    }

    /// Lists tasks with at least one tag whose key has this prefix.
    pub fn tag_key_prefix(self, prefix: impl Into<String>) -> Self {
        self.set(|filter| filter.tag_key_prefix = Some(prefix.into()))
    }

    /// Lists tasks of at least this priority.
    pub fn priority_from(self, priority: Priority) -> Self {
        self.set(|filter| filter.priority_from = Some(priority))
    }

    /// Lists tasks of at most this priority.
    pub fn priority_to(self, priority: Priority) -> Self {
        self.set(|filter| filter.priority_to = Some(priority))
    }

    /// Lists tasks that were submitted at this moment or later.
    pub fn submitted_from(self, moment: Timestamp) -> Self {
        self.set(|filter| filter.submitted_from = Some(moment))
    }

    /// Lists tasks that were submitted before this moment.
    pub fn submitted_before(self, moment: Timestamp) -> Self {
        self.set(|filter| filter.submitted_before = Some(moment))
    }

    /// Lists tasks that ended at this moment or later, without live ones.
    pub fn finished_from(self, moment: Timestamp) -> Self {
        self.set(|filter| filter.finished_from = Some(moment))
    }

    /// Lists tasks that ended before this moment, without live ones.
    pub fn finished_before(self, moment: Timestamp) -> Self {
        self.set(|filter| filter.finished_before = Some(moment))
    }

    /// Lists tasks whose cancellation was requested, or those without such a request.
    pub fn cancel_requested(self, requested: bool) -> Self {
        self.set(|filter| filter.cancel_requested = Some(requested))
    }

    /// Lists orchestrations, or all other tasks.
    pub fn orchestrations(self, are_orchestrations: bool) -> Self {
        self.set(|filter| filter.orchestration = Some(are_orchestrations))
    }

    /// Reads payloads and results too. By default they are left out, and a record's result is
    /// [`TaskResult::NotRead`](crate::task::TaskResult::NotRead).
    pub fn with_payload(self) -> Self {
        self.set(|filter| filter.with_payload = true)
    }

    /// Sets the number of tasks that one read of the store returns: 1 to 1000, which is the
    /// default.
    pub fn page_size(mut self, tasks: usize) -> Self {
        self.page_size = tasks.clamp(1, bounds::PAGE);
        self
    }
}

/// Reads.
impl TaskQuery {
    /// Returns the filter, for [`cancel_all`](Engine::cancel_all) and similar operations.
    ///
    /// # Errors
    /// [`is_invalid`](crate::Error::is_invalid) with the first invalid name.
    pub fn filter(self) -> Result<TaskFilter> {
        self.filter
    }

    /// Reads one page: the newest tasks, or those before [`TaskPage::next`] of the page before.
    ///
    /// # Errors
    /// The errors of [`filter`](Self::filter); the store's error if it could not be read.
    pub async fn page(&self, before: Option<TaskId>) -> Result<TaskPage> {
        let page = Page { before, limit: self.page_size };
        Ok(self.engine.inner.store.tasks(self.filter.clone()?, page).await?)
    }

    /// Returns the tasks one by one, read page by page. Tasks that are submitted during the reading
    /// are not included.
    pub fn stream(self) -> TaskStream {
        TaskStream { query: self, read: VecDeque::new(), before: None, is_over: false }
    }

    /// Reads all tasks into memory.
    ///
    /// # Errors
    /// The errors of [`page`](Self::page).
    pub async fn collect(self) -> Result<Vec<TaskRecord>> {
        let (mut tasks, mut stream) = (Vec::new(), self.stream());
        while let Some(task) = stream.next().await? {
            tasks.push(task);
        }
        Ok(tasks)
    }

    /// Reads the newest task.
    ///
    /// # Errors
    /// The errors of [`page`](Self::page).
    pub async fn first(self) -> Result<Option<TaskRecord>> {
        Ok(self.page_size(1).page(None).await?.tasks.into_iter().next())
    }

    /// Counts the tasks.
    ///
    /// # Errors
    /// The errors of [`page`](Self::page).
    pub async fn count(self) -> Result<u64> {
        Ok(self.engine.inner.store.count(self.filter?).await?)
    }
}

/// The tasks of a [`TaskQuery`], newest first, read page by page.
#[derive(Debug)]
pub struct TaskStream {
    query: TaskQuery,
    read: VecDeque<TaskRecord>,
    before: Option<TaskId>,
    is_over: bool,
}

impl TaskStream {
    /// Returns the next task, or `None` after the last. Cancel-safe.
    ///
    /// # Errors
    /// The errors of [`TaskQuery::page`]. The stream can be used again after one.
    pub async fn next(&mut self) -> Result<Option<TaskRecord>> {
        while self.read.is_empty() && !self.is_over {
            let page = self.query.page(self.before).await?;
            (self.before, self.is_over) = (page.next, page.next.is_none());
            self.read = page.tasks.into();
        }
        Ok(self.read.pop_front())
    }

    /// Returns the tasks as a `Stream`, which ends with the first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<TaskRecord>> + Send + use<> {
        try_unfold(self, |mut tasks| async move { Ok(tasks.next().await?.map(|task| (task, tasks))) })
    }
}
