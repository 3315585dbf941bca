//! The storage interface of an engine: the trait of a store, and the values that its reads return.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::error::Result;
use crate::api::io::IoStatistics;
use crate::api::name::Name;
use crate::api::notification::NotificationReceiver;
use crate::api::outcome::Outcome;
use crate::api::read::{Read, ReadReply};
use crate::api::served::Served;
use crate::api::tag::Tags;
use crate::api::task::{Priority, SessionId, TaskId, TaskRecord, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::{Scope, Write};
use crate::clock::Clock;
use crate::watch;

/// The future of a store operation, boxed so that a store can be a trait object.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A store of work. It has one method for changes, one for reads, and hints of changes.
///
/// * **[`apply`](Self::apply)** takes writes, which act in list order, and returns one outcome for
///   each. When the future completes, all writes are durable, at the durability level with which
///   the store was opened. Dropping the future does not cancel the writes: the caller no longer
///   learns if they happened.
/// * **Reads** see every write that was acknowledged before they began.
/// * **[`changes`](Self::changes)** hints that a new read may be worthwhile. A hint may come
///   without a change. A missed hint delays work, but loses none.
///
/// No transaction, SQL or driver type crosses this interface. A [`MemoryStore`](crate::MemoryStore)
/// is its specification.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Applies writes. The outcomes are in the order of the writes.
    ///
    /// # Errors
    /// If the store could not make the writes durable; then none of them happened.
    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>>;

    /// Reads the store. Callers use the methods of [`StoreReads`](crate::StoreReads).
    ///
    /// # Errors
    /// If the store could not be read.
    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply>;

    /// Returns a receiver of hints of changes, by this process or another one.
    fn changes(&self) -> Changes;

    /// Returns a receiver of the notifications from now on. It gets each task that ends in a commit
    /// of this process, in the order of the commits and before their calls return. Of commits of
    /// other processes it learns only that there were some.
    fn notifications(&self) -> NotificationReceiver;

    /// Returns the store's clock.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Returns the largest number of tasks that one of several concurrent claims should request. It
    /// is small where a claim is cheap, so that claims and ends share the commits evenly. It is
    /// [`bounds::CLAIM`](crate::bounds::CLAIM) where each claim costs a round trip.
    fn claim_size(&self) -> usize;

    /// Returns the properties of this store.
    fn info(&self) -> StoreInfo;

    /// Returns the store itself if it can take part in the caller's own transactions, which only
    /// some stores can; `None` otherwise. The methods for this belong to the type of the store.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// A filter of tasks for listings. A task must meet every condition that is set. The default
/// selects all tasks, without payloads and results.
/// ```
/// use onward_store::{MemoryStore, NewTask, Page, Store, StoreReads, TaskFilter, TaskState, Write};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// for kind in ["mail", "invoice", "mail"] {
///     store.apply(vec![Write::Submit(Box::new(NewTask::new(kind)?))]).await?;
/// }
///
/// let (kind, states) = (Some("mail".parse()?), vec![TaskState::Waiting]);
/// let waiting_mails = TaskFilter { kind, states, ..TaskFilter::default() };
/// let page = store.tasks(waiting_mails, Page::default()).await?;
/// assert_eq!(page.tasks.len(), 2);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFilter {
    /// The kind.
    pub kind: Option<Name>,
    /// The queue.
    pub queue: Option<Name>,
    /// The group.
    pub group: Option<Name>,
    /// The key.
    pub key: Option<String>,
    /// The parent.
    pub parent: Option<TaskId>,
    /// The states; an empty list selects all.
    pub states: Vec<TaskState>,
    /// The earliest time of submission.
    pub submitted_from: Option<Timestamp>,
    /// The time before which the task was submitted.
    pub submitted_before: Option<Timestamp>,
    /// The earliest time of the end. Excludes live tasks.
    pub finished_from: Option<Timestamp>,
    /// The time before which the task ended. Excludes live tasks.
    pub finished_before: Option<Timestamp>,
    /// Reads payloads and results, too. Default: false.
    pub with_payload: bool,
    /// The tags. The task must have all of them with the same values.
    pub tags: Tags,
    /// A prefix of a tag key. The task must have at least one tag with such a key.
    pub tag_key_prefix: Option<String>,
    /// A prefix of the key.
    pub key_prefix: Option<String>,
    /// The lowest priority.
    pub priority_from: Option<Priority>,
    /// The highest priority.
    pub priority_to: Option<Priority>,
    /// True selects tasks whose worker was asked to stop while they ran, false all others. The mark
    /// stays on ended tasks.
    pub cancel_requested: Option<bool>,
    /// The [batch](crate::Aggregate) of which the task is an item.
    pub batch: Option<TaskId>,
    /// True selects orchestrations, false all other tasks.
    pub orchestration: Option<bool>,
}

impl TaskFilter {
    /// Returns whether the filter has a condition on tags.
    pub(crate) fn asks_for_tags(&self) -> bool {
        !self.tags.is_empty() || self.tag_key_prefix.is_some()
    }
}

/// The part of a listing that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The exclusive upper end of the task numbers: [`TaskPage::next`] of the previous page. `None`
    /// starts with the newest task.
    pub before: Option<TaskId>,
    /// The largest number of tasks, clamped to 1 to 1000 ([`bounds::PAGE`](crate::bounds::PAGE)),
    /// or to 10 000 ([`bounds::ID_PAGE`](crate::bounds::ID_PAGE)) in a listing of numbers. Default:
    /// 50.
    pub limit: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self { before: None, limit: 50 }
    }
}

/// A page of tasks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TaskPage {
    /// The tasks, newest first.
    pub tasks: Vec<TaskRecord>,
    /// The value for [`Page::before`] of the next page; `None` if this was the last page.
    pub next: Option<TaskId>,
}

/// A page of task numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskIdPage {
    /// The numbers, highest first.
    pub tasks: Vec<TaskId>,
    /// The value for [`Page::before`] of the next page; `None` if this was the last page.
    pub next: Option<TaskId>,
}

impl TaskIdPage {
    /// Builds the page of the first `limit` tasks. A caller passes one task more than the limit, if
    /// there is one, to show that another page follows.
    pub(crate) fn of(mut tasks: Vec<TaskId>, limit: usize) -> Self {
        let more = tasks.len() > limit;
        tasks.truncate(limit);
        let next = tasks.last().filter(|_| more).copied();
        Self { tasks, next }
    }
}

/// The record of a queue: its sizes and settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRecord {
    /// The name.
    pub name: Name,
    /// The number of blocked tasks.
    pub blocked: u64,
    /// The number of scheduled tasks. It includes tasks that became due after the last sweep; an
    /// engine sweeps when a task becomes due.
    pub scheduled: u64,
    /// The number of waiting tasks.
    pub waiting: u64,
    /// The number of running tasks.
    pub running: u64,
    /// The number of ended tasks in history, by state.
    pub ended: EndedCounts,
    /// The due time of the first waiting task, by its priority and the time that it has waited: how
    /// far behind the queue is. If the queue has more sub-queues than the store examines
    /// ([`bounds::SUB_QUEUES_EXAMINED`](crate::bounds::SUB_QUEUES_EXAMINED)), it is that of the
    /// first task in the examined ones, and may be `None`.
    pub oldest_waiting: Option<Timestamp>,
    /// True if the queue itself is paused.
    pub paused: bool,
    /// The [weight](crate::QueueSettings::weight).
    pub weight: u32,
    /// The [concurrency](crate::QueueSettings::concurrency).
    pub concurrency: Option<u32>,
    /// The [wait for affinity](crate::QueueSettings::affinity_wait).
    pub affinity_wait: Duration,
}

impl QueueRecord {
    /// Returns how long the first waiting task has been due; zero if no task waits.
    #[must_use]
    pub fn latency(&self, now: Timestamp) -> Duration {
        self.oldest_waiting.map_or(Duration::ZERO, |due| now - due)
    }
}

/// The number of ended tasks in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EndedCounts {
    /// The number of completed tasks.
    pub completed: u64,
    /// The number of failed tasks.
    pub failed: u64,
    /// The number of dead letters.
    pub dead: u64,
    /// The number of cancelled tasks.
    pub cancelled: u64,
    /// The number of expired tasks.
    pub expired: u64,
}

impl EndedCounts {
    /// Returns the count of an ended state; `None` for a live state.
    pub fn of(&mut self, state: TaskState) -> Option<&mut u64> {
        match state {
            TaskState::Completed => Some(&mut self.completed),
            TaskState::Failed => Some(&mut self.failed),
            TaskState::Dead => Some(&mut self.dead),
            TaskState::Cancelled => Some(&mut self.cancelled),
            TaskState::Expired => Some(&mut self.expired),
            TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting | TaskState::Running => None,
        }
    }

    /// Returns the sum of all counts.
    #[must_use]
    pub fn total(self) -> u64 {
        self.completed + self.failed + self.dead + self.cancelled + self.expired
    }
}

/// Statistics of the ended tasks of one kind, since the store was created. Pruning does not change
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindStatistics {
    /// The kind.
    pub kind: Name,
    /// The number of tasks that ended in each state.
    pub ended: EndedCounts,
    /// The number of attempts that completed tasks used, in total.
    pub attempts: u64,
    /// The time that completed tasks waited, from their due time to their last claim, in total.
    pub wait: Duration,
    /// The time that the last attempts of completed tasks took, in total.
    pub run: Duration,
    /// The longest time of the last attempt of a completed task.
    pub run_maximum: Duration,
    /// The bytes that completed tasks were expected to move and have moved.
    #[serde(default, skip_serializing_if = "IoStatistics::is_none")]
    pub io: IoStatistics,
}

/// The record of an open session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// The number.
    pub id: SessionId,
    /// The name for people.
    pub name: String,
    /// The time at which the session was opened.
    pub opened_at: Timestamp,
    /// The length of the lease.
    pub lease: Duration,
    /// The number of tasks that the session runs.
    pub running: u64,
    /// The queues, kinds and code that the worker stated when it opened the session.
    #[serde(default)]
    pub serves: Served,
}

impl SessionRecord {
    /// Returns whether the session serves tasks of a kind from a queue.
    #[must_use]
    pub fn serves(&self, queue: &Name, kind: &Name) -> bool {
        self.serves.has_queue(queue) && self.serves.has_kind(kind)
    }

    /// Returns whether the session serves orchestrations of a kind from a queue that `version` of
    /// the code began. `None` stands for an orchestration that has not begun.
    #[must_use]
    pub fn serves_orchestration(&self, queue: &Name, kind: &Name, version: Option<u32>) -> bool {
        self.serves.has_queue(queue) && self.serves.has_code(kind, version)
    }
}

/// The record of a pause in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRecord {
    /// The scope.
    #[serde(flatten)]
    pub scope: Scope,
    /// The time at which the pause ends by itself; `None` if it has to be resumed.
    pub until: Option<Timestamp>,
}

impl PauseRecord {
    /// Returns whether the pause is still in force at `now`.
    pub(crate) fn holds_at(&self, now: Timestamp) -> bool {
        pause_holds(self.until, now)
    }
}

/// Returns whether a pause until `until` is still in force at `now`. A pause that has ended by
/// itself stays stored until the next write removes it, and readers must not see it.
pub(crate) fn pause_holds(until: Option<Timestamp>, now: Timestamp) -> bool {
    until.is_none_or(|until| until > now)
}

/// The durability level of a store: the failures that an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The write survives power loss. The default.
    #[default]
    Full,
    /// The write survives a killed process, but not power loss.
    Normal,
    /// The write survives no failure. For tests.
    Memory,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full => "full",
            Self::Normal => "normal",
            Self::Memory => "memory",
        })
    }
}

/// The properties of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreInfo {
    /// The backend: `memory`, `sqlite` or `postgres`.
    pub backend: &'static str,
    /// The location of the store, for people.
    pub location: String,
    /// The durability level.
    pub durability: Durability,
    /// The number of the schema.
    pub schema: u32,
    /// The largest payload, in bytes.
    pub payload_limit: usize,
}

/// A receiver of hints that the store changed. It is cheap to clone, and each clone remembers which
/// hints it has seen.
#[derive(Debug, Clone)]
pub struct Changes {
    receiver: watch::Receiver<Hint>,
}

/// Counts of changes since the store was opened. They only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hint {
    /// Counts changes that may make a task claimable.
    pub work: u64,
    /// Counts changes in which a task may have ended or was asked to stop, in this or another
    /// process.
    pub transitions: u64,
    /// Counts changes in which a schedule may have been set, deleted, paused or resumed, or may
    /// hold a firing, in this or another process.
    pub schedules: u64,
    /// Counts changes in which running tasks appended output, in this or another process.
    pub output: u64,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl Hint {
    /// Adds the changes of one commit.
    pub(crate) fn add(&mut self, change: Self) {
        self.work += change.work;
        self.transitions += change.transitions;
        self.schedules += change.schedules;
        self.output += change.output;
    }

    /// Returns the hint after which every waiting caller reads again.
    pub(crate) fn all() -> Self {
        Self { work: 1, transitions: 1, schedules: 1, output: 1 }
    }
}

impl Changes {
    /// Creates a receiver from a sender.
    #[must_use]
    pub fn new(sender: &watch::Sender<Hint>) -> Self {
        Self { receiver: sender.subscribe() }
    }

    /// Returns the current counts and marks them as seen.
    pub fn hint(&mut self) -> Hint {
        self.receiver.get_and_mark()
    }

    /// Returns the current counts without marking them as seen.
    #[must_use]
    pub fn peek(&self) -> Hint {
        self.receiver.get()
    }

    /// Waits for a change that was not seen yet. Returns the counts and marks them as seen, or
    /// returns `None` if the store is gone. The method is cancel-safe: a wait that is dropped loses
    /// no change.
    pub async fn changed(&mut self) -> Option<Hint> {
        self.receiver.changed().await.ok()?;
        Some(self.hint())
    }
}
