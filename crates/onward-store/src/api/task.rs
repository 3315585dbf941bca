//! What a task is: what its submitter says of it, and what a store knows of it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::api::aggregate::Aggregate;
use crate::api::dependency::Dependencies;
use crate::api::error::{Error, Result};
use crate::api::io::Io;
use crate::api::name::Name;
use crate::api::orchestration::ClaimedInstance;
use crate::api::result::TaskResult;
use crate::api::tag::Tags;
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::retry::RetryPolicy;

/// The number of a task. Numbers grow in the order in which a store accepted the tasks and are
/// never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub i64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for TaskId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.parse() {
            Ok(id) if id > 0 => Ok(Self(id)),
            _ => Err(Error::invalid(format!("`{text}` is not a task id; task ids are whole numbers from 1 up"))),
        }
    }
}

/// The number of a session: one worker process's registration with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub i64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The right to work on a task, given by a claim: who holds it, and which claim of this task it
/// was.
///
/// A write that ends or extends an attempt carries its lease. If the session has lapsed, or the
/// task has been claimed again since, the lease no longer fits and the write is refused: that is
/// the fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// The task.
    pub task: TaskId,
    /// The session that claimed it.
    pub session: SessionId,
    /// Which claim of this task it is, counted from 1 over the task's whole life.
    pub claim: u32,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Not due yet: delayed by its submitter, or between two attempts.
    Scheduled,
    /// Due, and waiting for a worker.
    Waiting,
    /// Claimed by a session.
    Running,
    /// Ended well.
    Completed,
    /// Ended by an error that no further attempt would mend.
    Failed,
    /// Gave up after its last attempt (or after three lost leases); somebody should look at it.
    Dead,
    /// Ended because somebody asked for it.
    Cancelled,
    /// Ended because it had not started in its time to live.
    Expired,
    /// Not ended: waits until other tasks have ended, until somebody finishes it from elsewhere, or
    /// is collected with others and ends with their bundle.
    Blocked,
}

impl TaskState {
    /// Every state, in the order of a task's life.
    pub const ALL: [Self; 9] = [
        Self::Blocked,
        Self::Scheduled,
        Self::Waiting,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Dead,
        Self::Cancelled,
        Self::Expired,
    ];

    /// Whether a task in this state has ended and is kept only as history.
    #[must_use]
    pub fn is_ended(self) -> bool {
        !matches!(self, Self::Blocked | Self::Scheduled | Self::Waiting | Self::Running)
    }

    /// The state's name as users write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Blocked => "blocked",
        }
    }

    /// The number under which a store keeps this state. Never changed, never used again for
    /// another.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Self::Scheduled => 1,
            Self::Waiting => 2,
            Self::Running => 3,
            Self::Completed => 4,
            Self::Failed => 5,
            Self::Dead => 6,
            Self::Cancelled => 7,
            Self::Expired => 8,
            Self::Blocked => 9,
        }
    }

    /// The state that a store keeps under `code`.
    #[must_use]
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TaskState {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("`{text}` is not a task state; the states are {known}"))
        })
    }
}

/// How urgent a task is: 0 to 255, higher first; within one level, what was due first. A level is
/// worth 60 seconds of waiting ([`bounds::PRIORITY_LEVEL`](crate::bounds::PRIORITY_LEVEL)): so much
/// later may a more urgent task become due and still go first, so that nothing starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(pub u8);

impl Priority {
    /// 32: an hour and a half behind ordinary work.
    pub const LOW: Self = Self(32);
    /// 128: the default.
    pub const NORMAL: Self = Self(128);
    /// 192: an hour before ordinary work.
    pub const HIGH: Self = Self(192);
    /// 255: two hours before ordinary work; nothing is more urgent.
    pub const URGENT: Self = Self(255);
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}

/// When a task becomes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At once.
    #[default]
    Now,
    /// This long after the store accepts it, by the store's clock.
    After(Duration),
    /// At a moment the user chose. A moment in the past means at once.
    At(Timestamp),
}

/// What to do with a submit whose key an active task of the same kind already has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDuplicate {
    /// Keep the existing task. If the new one is more urgent and the existing one has not started,
    /// raise its priority.
    #[default]
    Skip,
    /// Cancel the existing task and take the new one in its place.
    Supersede,
    /// Keep the existing task and say so as a rejection.
    Reject,
    /// If the existing task is running, take the new one when that ends; if it has not started,
    /// keep it.
    Requeue,
    /// Take the key over from this task, if it has ended and nobody but it has the key, which may
    /// be [kept](UniqueKey::keep_for) for it; a key that another has, or that it has while it is
    /// active, is refused with [`KeyTaken`](crate::Refusal::KeyTaken).
    TakeOver(TaskId),
}

/// A key that makes a task unique among the active tasks of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UniqueKey {
    /// The key: 1 to 512 bytes.
    pub key: String,
    /// What to do when the key is taken.
    #[serde(default)]
    pub on_duplicate: OnDuplicate,
    /// How long the key stays taken after the task has ended. Zero (the default): it is free at
    /// once.
    #[serde(default)]
    pub keep_for: Duration,
}

/// From when a time to live counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TtlFrom {
    /// From the moment the store accepted the task; over once its first attempt has started.
    #[default]
    Submission,
    /// From the start of its first attempt: no further attempt starts after it.
    FirstAttempt,
}

/// How long a task may wait before it expires instead of starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ttl {
    /// The time to live, to the microsecond.
    pub duration: Duration,
    /// From when it counts.
    #[serde(default)]
    pub from: TtlFrom,
}

/// A task as its submitter describes it.
///
/// ```
/// use std::time::Duration;
/// use onward_store::{NewTask, Priority, When};
///
/// let mut task = NewTask::new("send-mail")?;
/// task.payload = br#"{"to":"ada@example.org"}"#.as_slice().into();
/// task.priority = Priority::HIGH;
/// task.when = When::After(Duration::from_secs(60));
/// # Ok::<(), onward_store::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewTask {
    /// The name that selects a handler.
    pub kind: Name,
    /// The queue it waits in. Default: `default`.
    pub queue: Name,
    /// What the handler gets: bytes, at most 1 MiB unless the store was opened with another limit.
    pub payload: Bytes,
    /// Default: 128.
    pub priority: Priority,
    /// When it becomes due. Default: at once.
    pub when: When,
    /// A key that makes it unique. Default: none.
    pub unique: Option<UniqueKey>,
    /// How long it may wait before it expires. Default: for ever.
    pub ttl: Option<Ttl>,
    /// How long one attempt may take from the moment its handler starts. Default: as the engine
    /// says.
    pub timeout: Option<Duration>,
    /// How long an attempt may go on without a sign of life of its handler, whose process lives;
    /// after that it counts as failed. Default: as the handler says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout: Option<Duration>,
    /// No attempt runs past this moment; with a timeout, the earlier of the two counts. A task that
    /// waits for an attempt then expires, at once if the moment has passed when it is submitted.
    /// Default: none.
    pub deadline: Option<Timestamp>,
    /// How long it is kept after its end, with its result and its errors, however it ended: the
    /// first [prune](crate::Prune) after that forgets it, and none before. Zero: the next prune
    /// does. Default: for as long as prunes leave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Duration>,
    /// How it is tried again. Default: as its kind, its queue or the engine says, in this order.
    pub retry: Option<RetryPolicy>,
    /// The group with whose tasks it shares [limits](crate::Limit): a tenant, a bucket, an
    /// endpoint. Default: none.
    pub group: Option<Name>,
    /// The moment of the schedule's firing that submits it. Default: none; a schedule sets it.
    pub scheduled_at: Option<Timestamp>,
    /// What it can be found by. Default: none.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// Which tasks must have ended before it may start. Default: none.
    #[serde(default)]
    pub depends_on: Dependencies,
    /// The task whose child it is: if that ends otherwise than completed, it is cancelled. Default:
    /// none.
    #[serde(default)]
    pub parent: Option<TaskId>,
    /// What one attempt is expected to move, to be known before it starts: an engine with a
    /// [bandwidth](crate::IoKind) counts it from then on. Default: nothing.
    #[serde(default, skip_serializing_if = "Io::is_none")]
    pub io: Io,
    /// Has it collected with others, to be handed over with them as one. Default: it is a task by
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
    /// The series that it belongs to: it prefers the session that last started a task of the same
    /// series, for as long as its [queue](crate::QueueSettings::affinity_wait) says. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Name>,
    /// Whether it is an orchestration: its attempts are [turns](crate::Write::Turn), and it has a
    /// history and a mailbox. Default: no.
    #[serde(default, skip_serializing_if = "is_false")]
    pub orchestration: bool,
    /// Has its end told to its parent, an orchestration, in a [message](crate::MessageBody::Ended)
    /// with this reference. Default: it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<u64>,
}

impl NewTask {
    /// A task of a kind with an empty payload and the default of everything else.
    ///
    /// # Errors
    /// If `kind` is not a valid [`Name`].
    pub fn new(kind: impl AsRef<str>) -> Result<Self> {
        Ok(Self::of(Name::new(kind)?))
    }

    /// A task of a kind whose name has been checked already.
    #[must_use]
    pub fn of(kind: Name) -> Self {
        Self {
            kind,
            queue: Name::default_queue(),
            payload: Bytes::new(),
            priority: Priority::NORMAL,
            when: When::Now,
            unique: None,
            ttl: None,
            timeout: None,
            heartbeat_timeout: None,
            deadline: None,
            retention: None,
            retry: None,
            group: None,
            scheduled_at: None,
            tags: Tags::new(),
            depends_on: Dependencies::default(),
            parent: None,
            io: Io::default(),
            aggregate: None,
            affinity: None,
            orchestration: false,
            report: None,
        }
    }

    /// Checks what a store would refuse, so that a caller can know before it submits.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid): the payload is larger than `payload_limit` bytes, the key
    /// is empty or too long, tags are too many or out of bounds, a duration is zero where that
    /// makes no sense, or the kind or queue is one of Onward's own.
    pub fn check(&self, payload_limit: usize) -> Result<()> {
        self.check_names()?;
        check_payload("payload", self.payload.len(), payload_limit, &self.kind)?;
        if let Some(unique) = &self.unique {
            check_key(&unique.key, &self.kind)?;
        }
        self.tags.check()?;
        if self.ttl.is_some_and(|ttl| ttl.duration.is_zero()) {
            return Err(self.wrong("a time to live of zero", "leave it out, or give it at least a microsecond"));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(self.wrong("a timeout of zero", "leave it out, or give it at least a microsecond"));
        }
        if self.heartbeat_timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(self.wrong("a heartbeat timeout of zero", "leave it out, or give it at least a microsecond"));
        }
        self.depends_on.check(&self.kind)?;
        self.aggregate.map_or(Ok(()), |aggregate| aggregate.check(self))?;
        if self.orchestration {
            self.check_orchestration()?;
        }
        if self.report.is_some() && self.parent.is_none() {
            return Err(self.wrong("an end to be told and no parent", "name the orchestration that it is told"));
        }
        self.retry.as_ref().map_or(Ok(()), |retry| retry.check(&self.kind))
    }

    /// Lines of `onward each`, and orchestrations that keep signals for a start, are the only tasks
    /// with reserved names.
    fn check_names(&self) -> Result<()> {
        let is_line = *self.kind == *bounds::EACH_KIND
            && !self.orchestration
            && self.queue.starts_with(bounds::EACH_QUEUE_PREFIX);
        if !is_line {
            self.kind.check_own("kind")?;
        }
        let keeps_signals = self.orchestration && *self.queue == *bounds::UNSTARTED_QUEUE;
        if keeps_signals { Ok(()) } else { self.queue.check_own("queue") }
    }

    /// It has turns and no attempts: what is about these would be ignored.
    fn check_orchestration(&self) -> Result<()> {
        let for_attempts = [
            (self.aggregate.is_some(), "is to be collected with others"),
            (self.timeout.is_some(), "has a timeout for an attempt"),
            (self.heartbeat_timeout.is_some(), "has a heartbeat timeout for its attempts"),
            (self.retry.is_some(), "has a retry policy"),
            (self.deadline.is_some(), "has a deadline for its attempts"),
        ];
        match for_attempts.into_iter().find(|(is_set, _)| *is_set) {
            Some((_, what)) => Err(Error::invalid(format!(
                "the orchestration of kind `{}` {what}, and has no attempts; leave that out, and have its code wait for a timer instead",
                self.kind
            ))),
            None => Ok(()),
        }
    }

    #[cold]
    fn wrong(&self, what: &str, remedy: &str) -> Error {
        Error::invalid(format!("a task of kind `{}` has {what}; {remedy}", self.kind))
    }
}

/// Checks the size of a payload or a result.
pub(crate) fn check_payload(what: &str, bytes: usize, limit: usize, kind: &str) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the {what} of a task of kind `{kind}` has {bytes} bytes and the limit of this store is {limit}; \
         keep the data elsewhere and pass a reference, or open the store with a larger limit"
    )))
}

fn check_key(key: &str, kind: &str) -> Result<()> {
    if key.is_empty() {
        return Err(Error::invalid(format!("a task of kind `{kind}` has an empty key; leave the key out instead")));
    }
    if key.len() > bounds::KEY_BYTES {
        return Err(Error::invalid(format!(
            "the key of a task of kind `{kind}` has {} bytes and the limit is {}; use a digest of it as the key",
            key.len(),
            bounds::KEY_BYTES
        )));
    }
    Ok(())
}

/// What a claim hands to a worker: all it needs to run one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedTask {
    /// The right to work on it.
    pub lease: Lease,
    /// The name that selects a handler.
    pub kind: Name,
    /// The queue it was in.
    pub queue: Name,
    /// Its group.
    pub group: Option<Name>,
    /// The weight of the queue.
    pub weight: u32,
    /// What the handler gets.
    pub payload: Bytes,
    /// How urgent it is.
    pub priority: Priority,
    /// Which attempt this is, counted from 1. Claims that were given back unstarted are not
    /// counted.
    pub attempt: u32,
    /// When the store accepted it.
    pub submitted_at: Timestamp,
    /// Since when it was due.
    pub run_at: Timestamp,
    /// How long this attempt may take once its handler has started.
    pub timeout: Option<Duration>,
    /// How long it may go on without a sign of life of its handler.
    pub heartbeat_timeout: Option<Duration>,
    /// When this attempt must be over.
    pub deadline: Option<Timestamp>,
    /// How long it is kept after its end, where its submitter said so.
    pub retention: Option<Duration>,
    /// The task's own retry policy.
    pub retry: Option<RetryPolicy>,
    /// The moment of the schedule's firing that submitted it.
    pub scheduled_at: Option<Timestamp>,
    /// Its tags.
    pub tags: Tags,
    /// Its time to live.
    pub ttl: Option<Ttl>,
    /// The task whose child it is.
    pub parent: Option<TaskId>,
    /// What an earlier attempt left for when its children have ended
    /// ([`Write::AwaitChildren`](crate::Write::AwaitChildren)).
    pub memo: Option<Bytes>,
    /// What this attempt is expected to move.
    pub expected_io: Io,
    /// How many tasks were handed over with it as one, if it is a bundle; 0 for any other task.
    pub members: u32,
    /// What came for it, if it is an orchestration.
    pub instance: Option<Box<ClaimedInstance>>,
}

/// One attempt that did not end well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptError {
    /// Which attempt, counted from 1; where none was under way, the one before (0 before the
    /// first).
    pub attempt: u32,
    /// When it ended.
    pub at: Timestamp,
    /// What the handler, or the store, said.
    pub message: String,
}

/// How far a running task says it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// From 0.0 to 1.0, if the handler knows.
    pub fraction: Option<f32>,
    /// What it is doing, at most 1024 bytes.
    pub message: Option<String>,
    /// When it said so.
    pub at: Timestamp,
    /// How many bytes it has done, and of how many, if it counts them.
    #[serde(default)]
    pub bytes: Option<ByteProgress>,
}

/// How many bytes are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteProgress {
    /// So many. A store keeps at most 2⁶³ − 1.
    pub done: u64,
    /// Of so many, if that is known. A store keeps at most 2⁶³ − 1.
    pub total: Option<u64>,
}

impl ByteProgress {
    /// What part is done, from 0.0 to 1.0; `None` where there is no total, or one of nothing.
    #[must_use]
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a fraction is for people")]
    pub fn fraction(self) -> Option<f32> {
        let total = self.total.filter(|total| *total > 0)?;
        Some((self.done as f64 / total as f64).min(1.0) as f32)
    }
}

/// Everything a store knows of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Its number.
    pub id: TaskId,
    /// The name that selects its handler.
    pub kind: Name,
    /// The queue it is or was in.
    pub queue: Name,
    /// Its group.
    pub group: Option<Name>,
    /// Where it stands.
    pub state: TaskState,
    /// How urgent it is.
    pub priority: Priority,
    /// What its handler gets; `None` where a listing was asked to leave payloads out.
    pub payload: Option<Bytes>,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// When the store accepted it.
    pub submitted_at: Timestamp,
    /// When it is or was due.
    pub run_at: Timestamp,
    /// When it expires if it has not started.
    pub expires_at: Option<Timestamp>,
    /// How many attempts it has used up, a running one included.
    pub attempts: u32,
    /// When its latest attempt was claimed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// The session that runs it.
    pub session: Option<SessionId>,
    /// Whether somebody has asked a running task to stop.
    pub cancel_requested: bool,
    /// What its handler returned, as far as it was read. Of a member it is that of its bundle, as
    /// long as that is kept.
    #[serde(default, skip_serializing_if = "TaskResult::is_not_read")]
    pub result: TaskResult,
    /// Attempts that did not end well, oldest first.
    pub errors: Vec<AttemptError>,
    /// How far it last said it was.
    pub progress: Option<Progress>,
    /// Its tags.
    #[serde(default)]
    pub tags: Tags,
    /// The tasks that it waits for while it is blocked, by number.
    pub blocked_by: Vec<TaskId>,
    /// The task whose child it is.
    pub parent: Option<TaskId>,
    /// What its submitter said that an attempt would move; all 0 where nothing was said.
    #[serde(default, skip_serializing_if = "Io::is_none")]
    pub expected_io: Io,
    /// What the last attempt that told it has moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<Io>,
    /// How it is, or was, collected with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
    /// The bundle of which it is a member, also if that has been removed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<TaskId>,
    /// How many tasks were handed over with it as one, if it is a bundle; 0 for any other task.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub members: u32,
    /// The series that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Name>,
    /// Whether it is an orchestration.
    #[serde(default, skip_serializing_if = "is_false")]
    pub orchestration: bool,
    /// Under which reference its parent, an orchestration, hears of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<u64>,
    /// How long its key stays taken after its end.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub keep_key_for: Duration,
    /// Its time to live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
    /// How long one attempt may take, where its submitter said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How long an attempt may go on without a sign of life, where its submitter said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout: Option<Duration>,
    /// The moment that no attempt runs past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// How long it is kept after its end, where its submitter said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Duration>,
    /// How it is tried again, where its submitter said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// The moment of the schedule's firing that submitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(members: &u32) -> bool {
    *members == 0
}
