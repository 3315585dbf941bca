//! The seam: what an engine asks of whatever keeps its work.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::api::aggregate::{CollectionRecord, CollectionSelection};
use crate::api::error::Result;
use crate::api::event::{EventCursor, EventPage};
use crate::api::history::QueueDay;
use crate::api::io::IoStatistics;
use crate::api::limit::LimitRecord;
use crate::api::name::Name;
use crate::api::news::NewsReceiver;
use crate::api::orchestration::{HistoryChunk, InstanceRecord};
use crate::api::outcome::Outcome;
use crate::api::queue::QueueMode;
use crate::api::reason::WaitReason;
use crate::api::schedule::{ScheduleRecord, ScheduleSelection};
use crate::api::served::Served;
use crate::api::tag::{TagKeyPage, TagPage, TagValuePage, Tags};
use crate::api::task::{Priority, SessionId, TaskId, TaskRecord, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::{Claim, Scope, Write};
use crate::clock::Clock;

/// A boxed future, so that a store can be a trait object.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Where work is kept: one verb of change, a few reads, and hints.
///
/// * **[`apply`](Self::apply)** takes writes, which act in list order; each gets its own outcome,
///   and all are durable, in the class with which the store was opened, when the future completes.
///   Dropping the future does not take the writes back: they happen, or not, as if the answer had
///   been lost.
/// * **Reads** see every write acknowledged before they began.
/// * **[`changes`](Self::changes)** hints that a look may be worth while. A hint is never the
///   truth; a missed one costs time, never work.
///
/// No transaction, SQL or driver type crosses this seam. A [`MemoryStore`](crate::MemoryStore) is
/// its specification.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Applies writes; the outcomes are in the order of the writes.
    ///
    /// # Errors
    /// If the store could not make the writes durable; then none of them happened.
    fn apply(&self, writes: Vec<Write>) -> Answer<'_, Vec<Outcome>>;

    /// Hints of change, by this process or another one.
    fn changes(&self) -> Changes;

    /// Tells of each task that ends in a commit of this process from now on, in the order of the
    /// commits and before they are answered; of others' commits only that there were some.
    fn news(&self) -> NewsReceiver;

    /// The store's clock.
    fn clock(&self) -> Arc<dyn Clock>;

    /// For how many tasks a claim should ask at the most where several are under way at once: for
    /// few where a claim costs little beside what it hands out, so that claims and ends share the
    /// commits evenly; for [`bounds::CLAIM`](crate::bounds::CLAIM) where each costs a round trip.
    fn claim_size(&self) -> usize;

    /// One task with all that is known of it, whether it is live or ended. Cost does not depend on
    /// how many there are.
    ///
    /// # Errors
    /// If the store could not be read.
    fn task(&self, task: TaskId) -> Answer<'_, Option<TaskRecord>>;

    /// Why a task does not run: every reason that holds now, none for one that could start now,
    /// runs, or has ended otherwise than by [expiring](TaskState::Expired); `None` for a task that
    /// is not there. A claim hands the task out once all of them are gone. Cost: up to
    /// [`bounds::AHEAD`](crate::bounds::AHEAD) entries of its line.
    ///
    /// # Errors
    /// If the store could not be read.
    fn why(&self, task: TaskId) -> Answer<'_, Option<Vec<WaitReason>>>;

    /// A page of tasks, newest (highest number) first.
    ///
    /// # Errors
    /// If the store could not be read.
    fn tasks(&self, filter: TaskFilter, page: Page) -> Answer<'_, TaskPage>;

    /// The task that a claim would hand out first, without claiming it; `claim.session` and
    /// `claim.limit` are ignored.
    ///
    /// # Errors
    /// If the store could not be read.
    fn peek(&self, claim: Claim) -> Answer<'_, Option<TaskRecord>>;

    /// Every queue with its sizes, by name. Cost follows the queues, the running tasks and the
    /// lines of waiting tasks, at the most
    /// [`bounds::LINES_LOOKED_AT`](crate::bounds::LINES_LOOKED_AT) of them, and not how many tasks
    /// wait.
    ///
    /// # Errors
    /// If the store could not be read.
    fn queues(&self) -> Answer<'_, Vec<QueueRecord>>;

    /// How claims choose among queues where they do not say so themselves.
    ///
    /// # Errors
    /// If the store could not be read.
    fn queue_mode(&self) -> Answer<'_, QueueMode>;

    /// What ended tasks were like, by kind.
    ///
    /// # Errors
    /// If the store could not be read.
    fn statistics(&self) -> Answer<'_, Vec<KindStatistics>>;

    /// The sessions that are open, oldest first.
    ///
    /// # Errors
    /// If the store could not be read.
    fn sessions(&self) -> Answer<'_, Vec<SessionRecord>>;

    /// The pauses in force, in the order of their scopes.
    ///
    /// # Errors
    /// If the store could not be read.
    fn pauses(&self) -> Answer<'_, Vec<PauseRecord>>;

    /// The limits in force, in the order of their scopes; of queues those too that were set as
    /// their concurrency.
    ///
    /// # Errors
    /// If the store could not be read.
    fn limits(&self) -> Answer<'_, Vec<LimitRecord>>;

    /// What is being collected to be handed over as one, what is handed over next first. Cost
    /// follows how much of it is listed, or how much there is where one queue is asked for.
    ///
    /// # Errors
    /// If the store could not be read.
    fn collections(&self, which: CollectionSelection) -> Answer<'_, Vec<CollectionRecord>>;

    /// Schedules.
    ///
    /// # Errors
    /// If the store could not be read.
    fn schedules(&self, which: ScheduleSelection) -> Answer<'_, Vec<ScheduleRecord>>;

    /// Events behind a cursor, oldest first, at most `limit` (and at most 1000).
    ///
    /// # Errors
    /// If the store could not be read.
    fn events(&self, after: EventCursor, limit: usize) -> Answer<'_, EventPage>;

    /// What this store is and promises.
    fn info(&self) -> StoreInfo;

    /// The numbers of a page of tasks, newest (highest) first: what [`tasks`](Self::tasks) shows,
    /// without the tasks. Where tags are asked for, cost follows the tasks with the rarest of them,
    /// not the store.
    ///
    /// # Errors
    /// If the store could not be read.
    fn task_ids(&self, filter: TaskFilter, page: Page) -> Answer<'_, TaskIdPage>;

    /// How many tasks a listing shows in all. The count of one tag alone is known without counting;
    /// otherwise cost is as that of [`task_ids`](Self::task_ids) for every page.
    ///
    /// # Errors
    /// If the store could not be read.
    fn count(&self, filter: TaskFilter) -> Answer<'_, u64>;

    /// A page of the values that a tag key has, and how many of the tasks that a listing shows have
    /// each. Without a filter cost follows the page alone; with one, the tasks that have the key.
    ///
    /// # Errors
    /// If the store could not be read.
    fn tag_values(&self, key: String, filter: TaskFilter, page: TagPage) -> Answer<'_, TagValuePage>;

    /// A page of the tag keys that begin with a text, all for an empty one. Cost follows the page
    /// alone.
    ///
    /// # Errors
    /// If the store could not be read.
    fn tag_keys(&self, prefix: String, page: TagPage) -> Answer<'_, TagKeyPage>;

    /// How tasks ended on each of the last `days` days, 1 to
    /// [`bounds::HISTORY_DAYS`](crate::bounds::HISTORY_DAYS), in UTC, today the last of them: the
    /// oldest day first, and of a day by queue; what had no ends is left out. A clock that was set
    /// back counts to the latest day that there was. Cost follows queues and days.
    ///
    /// # Errors
    /// If the store could not be read.
    fn history(&self, days: u32) -> Answer<'_, Vec<QueueDay>>;

    /// What is kept of an orchestration beside its task; `None` for a task that is none, or is not
    /// there.
    ///
    /// # Errors
    /// If the store could not be read.
    fn instance(&self, task: TaskId) -> Answer<'_, Option<InstanceRecord>>;

    /// The history of an orchestration from the chunk that has event number `from` on, at most
    /// `limit` chunks (and at most 1000), oldest first.
    ///
    /// # Errors
    /// If the store could not be read.
    fn instance_history(&self, task: TaskId, from: u64, limit: usize) -> Answer<'_, Vec<HistoryChunk>>;

    /// The store itself, for what only stores of its sort can do, as inherent methods: taking part
    /// in transactions of the caller's own. `None`, the default, for one that has nothing of the
    /// kind.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// Which tasks a listing shows. Every condition that is given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFilter {
    /// Of this kind.
    pub kind: Option<Name>,
    /// In this queue.
    pub queue: Option<Name>,
    /// Of this group.
    pub group: Option<Name>,
    /// With this key.
    pub key: Option<String>,
    /// Children of this task.
    pub parent: Option<TaskId>,
    /// In one of these states; empty means any.
    pub states: Vec<TaskState>,
    /// Submitted at or after.
    pub submitted_from: Option<Timestamp>,
    /// Submitted before.
    pub submitted_before: Option<Timestamp>,
    /// Ended at or after; leaves out live tasks.
    pub finished_from: Option<Timestamp>,
    /// Ended before; leaves out live tasks.
    pub finished_before: Option<Timestamp>,
    /// Whether payloads and results are read too.
    pub with_payload: bool,
    /// With all of these tags.
    pub tags: Tags,
    /// With at least one tag whose key begins so.
    pub tag_key_prefix: Option<String>,
    /// With a key that begins so.
    pub key_prefix: Option<String>,
    /// At least so urgent.
    pub priority_from: Option<Priority>,
    /// At most so urgent.
    pub priority_to: Option<Priority>,
    /// Asked to stop, or not: of running tasks, and of ended ones that were running then.
    pub cancel_requested: Option<bool>,
    /// Members of this [bundle](crate::Aggregate).
    pub bundle: Option<TaskId>,
    /// Orchestrations, or no orchestrations.
    pub orchestration: Option<bool>,
}

impl TaskFilter {
    /// Whether tags decide.
    pub(crate) fn asks_for_tags(&self) -> bool {
        !self.tags.is_empty() || self.tag_key_prefix.is_some()
    }
}

/// Which part of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Only tasks with a lower number: [`TaskPage::next`] of the page before.
    pub before: Option<TaskId>,
    /// At most so many, up to 1000.
    pub limit: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self { before: None, limit: 50 }
    }
}

/// A page of tasks.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct TaskPage {
    /// The tasks, newest first.
    pub tasks: Vec<TaskRecord>,
    /// Where the next page begins; `None` if this was the last.
    pub next: Option<TaskId>,
}

/// A page of the numbers of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TaskIdPage {
    /// The numbers, highest first.
    pub tasks: Vec<TaskId>,
    /// Where the next page begins; `None` if this was the last.
    pub next: Option<TaskId>,
}

impl TaskIdPage {
    /// The page of those of `tasks` that fit in; one more than fits says that there are more.
    pub(crate) fn of(mut tasks: Vec<TaskId>, limit: usize) -> Self {
        let more = tasks.len() > limit;
        tasks.truncate(limit);
        let next = tasks.last().filter(|_| more).copied();
        Self { tasks, next }
    }
}

/// A queue and its sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRecord {
    /// Its name.
    pub name: Name,
    /// Tasks that wait until others have ended.
    pub blocked: u64,
    /// Tasks not due yet, or due since the last sweep: an engine that runs sweeps when one becomes
    /// due.
    pub scheduled: u64,
    /// Tasks due and waiting.
    pub waiting: u64,
    /// Tasks running.
    pub running: u64,
    /// Ended tasks still in history, by state: completed, failed, dead, cancelled, expired.
    pub ended: EndedCounts,
    /// When the waiting task was due that is first in line by its priority and the time that it has
    /// waited: how far behind the queue is. Where there are more lines of groups than are looked
    /// at, it is the first of those that are, and may be missing.
    pub oldest_waiting: Option<Timestamp>,
    /// Whether the queue itself is paused.
    pub paused: bool,
    /// Its [weight](crate::QueueSettings::weight).
    pub weight: u32,
    /// Its [concurrency](crate::QueueSettings::concurrency).
    pub concurrency: Option<u32>,
    /// Its [wait for affinity](crate::QueueSettings::affinity_wait).
    pub affinity_wait: Duration,
}

impl QueueRecord {
    /// How long the task that is first in line has been due; zero where nothing waits.
    #[must_use]
    pub fn latency(&self, now: Timestamp) -> Duration {
        self.oldest_waiting.map_or(Duration::ZERO, |due| now - due)
    }
}

/// Ended tasks by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EndedCounts {
    /// Ended well.
    pub completed: u64,
    /// Failed for good.
    pub failed: u64,
    /// In the dead letters.
    pub dead: u64,
    /// Cancelled.
    pub cancelled: u64,
    /// Expired.
    pub expired: u64,
}

impl EndedCounts {
    /// The count of one ended state; `None` for a live one.
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

    /// All of them.
    #[must_use]
    pub fn total(self) -> u64 {
        self.completed + self.failed + self.dead + self.cancelled + self.expired
    }
}

/// What ended tasks of one kind were like, since the store was made; pruning does not change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindStatistics {
    /// The kind.
    pub kind: Name,
    /// How they ended.
    pub ended: EndedCounts,
    /// Attempts that completed tasks used in all.
    pub attempts: u64,
    /// Time that completed tasks waited, from due to their last claim, in all.
    pub wait: Duration,
    /// Time that the last attempts of completed tasks took, in all.
    pub run: Duration,
    /// The longest of them.
    pub run_maximum: Duration,
    /// What completed tasks moved, and what had been expected.
    #[serde(default, skip_serializing_if = "IoStatistics::is_none")]
    pub io: IoStatistics,
}

/// An open session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Its number.
    pub id: SessionId,
    /// Its name for people.
    pub name: String,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// The length of its lease.
    pub lease: Duration,
    /// How many tasks it holds.
    pub running: u64,
    /// What it said that it takes.
    #[serde(default)]
    pub serves: Served,
}

impl SessionRecord {
    /// Whether it takes tasks of a kind from a queue.
    #[must_use]
    pub fn serves(&self, queue: &Name, kind: &Name) -> bool {
        self.serves.has_queue(queue) && self.serves.has_kind(kind)
    }

    /// Returns whether it takes orchestrations of a kind from a queue that a version of the code
    /// began; `None` for one that has not begun.
    #[must_use]
    pub fn serves_orchestration(&self, queue: &Name, kind: &Name, version: Option<u32>) -> bool {
        self.serves.has_queue(queue) && self.serves.has_code(kind, version)
    }
}

/// A pause in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRecord {
    /// What is paused.
    #[serde(flatten)]
    pub scope: Scope,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
}

impl PauseRecord {
    /// Whether it has not ended by itself by then.
    pub(crate) fn holds_at(&self, now: Timestamp) -> bool {
        pause_holds(self.until, now)
    }
}

/// Whether a pause that ends then has not ended by itself. Whoever writes next removes one that
/// has; until then nobody is to be told of it.
pub(crate) fn pause_holds(until: Option<Timestamp>, now: Timestamp) -> bool {
    until.is_none_or(|until| until > now)
}

/// What an acknowledgement means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// It survives power loss.
    #[default]
    Full,
    /// It survives a killed process, not power loss.
    Normal,
    /// It survives nothing: for tests.
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

/// What a store is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreInfo {
    /// `memory` or `sqlite`.
    pub backend: &'static str,
    /// Where it is, for people.
    pub location: String,
    /// What an acknowledgement means.
    pub durability: Durability,
    /// The number of its schema.
    pub schema: u32,
    /// The largest payload it takes, in bytes.
    pub payload_limit: usize,
}

/// Hints of change. Cheap to clone; each clone remembers what it has seen.
#[derive(Debug, Clone)]
pub struct Changes {
    receiver: watch::Receiver<Hint>,
}

/// What has changed since the store was opened, as counts that only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hint {
    /// There may be something new to claim.
    pub work: u64,
    /// Tasks may have ended, or have been asked to stop, by another process's doing or this one's.
    pub transitions: u64,
    /// Schedules may have been set, deleted, paused or resumed, by another process or this one.
    pub schedules: u64,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl Hint {
    /// Adds what one commit changed.
    pub(crate) fn add(&mut self, change: Self) {
        self.work += change.work;
        self.transitions += change.transitions;
        self.schedules += change.schedules;
    }
}

impl Changes {
    /// Hints from a sender.
    #[must_use]
    pub fn new(sender: &watch::Sender<Hint>) -> Self {
        Self { receiver: sender.subscribe() }
    }

    /// The counts now; marks them as seen.
    pub fn hint(&mut self) -> Hint {
        *self.receiver.borrow_and_update()
    }

    /// The counts now, which stay unseen if they are.
    #[must_use]
    pub fn peek(&self) -> Hint {
        *self.receiver.borrow()
    }

    /// Waits until something changed that was not seen yet, and answers the counts; `None` if the
    /// store is gone. Cancel-safe: a dropped wait misses nothing.
    pub async fn changed(&mut self) -> Option<Hint> {
        self.receiver.changed().await.ok()?;
        Some(self.hint())
    }
}
