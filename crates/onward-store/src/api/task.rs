//! Tasks: the description that a submitter gives, and the record that a store keeps.

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

/// The number of a task. A store numbers tasks in the order in which it accepts them, from 1 up,
/// and never reuses a number.
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

/// The number of a session, which is the registration of one worker process with a store. A store
/// never reuses a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub i64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The right to work on a task. A claim creates it.
///
/// A lease names the task, the session and a claim number, which goes up each time the task is
/// claimed. A write that ends or extends an attempt carries its lease. If the session has lapsed,
/// or the task has been claimed again, the lease no longer matches and the store rejects the write.
/// This check is the **fence**: an attempt that lost its task cannot change the result or the state
/// that a later attempt leaves.
///
/// The fence protects what the store keeps, and nothing else. An effect elsewhere, such as a mail,
/// may happen once in each attempt. A system that compares numbers can refuse the late one: give it
/// the claim number of the [`CompletionToken`](crate::CompletionToken), which only goes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// The task.
    pub task: TaskId,
    /// The session that claimed the task.
    pub session: SessionId,
    /// The claim number: the number of claims of this task so far, counted from 1 over its whole
    /// life.
    pub claim: u32,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Not due yet: delayed by its submitter, between two attempts, or an orchestration parked
    /// until its timer.
    Scheduled,
    /// Due, and waiting for a worker.
    Waiting,
    /// Claimed by a session.
    Running,
    /// Ended successfully.
    Completed,
    /// Ended without further attempts: by a permanent error, or because a dependency did not
    /// complete ([`OnDependencyFailure::Fail`](crate::OnDependencyFailure::Fail)).
    Failed,
    /// Ended as a dead letter that an operator should look at. The task failed after all retries,
    /// lost three leases in a row ([`bounds::LOST_LEASES`]), or was [killed](crate::Write::Kill).
    Dead,
    /// Ended by a cancellation: requested by a caller, or because a parent, a dependency or a batch
    /// did not complete.
    Cancelled,
    /// Ended because no attempt started within its time to live or before its deadline.
    Expired,
    /// Not ended, and waiting for something other than its due time: other tasks, an external
    /// completion, or the end of its batch. A parked or paused orchestration is blocked too.
    Blocked,
}

impl TaskState {
    /// All states: first the live ones in the order of a task's life, then the ended ones.
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

    /// Returns whether a task in this state has ended and is kept only as history.
    #[must_use]
    pub fn is_ended(self) -> bool {
        !matches!(self, Self::Blocked | Self::Scheduled | Self::Waiting | Self::Running)
    }

    /// Returns the name of the state in lower case, such as `waiting`.
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

    /// Returns the number under which stores keep this state. It never changes and is never reused
    /// for another state.
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

    /// Returns the state that has this number; `None` for an unknown number.
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

/// The urgency of a task, from 0 to 255. Higher priorities run first; tasks of one priority run in
/// the order of their due times.
///
/// One level is worth 60 seconds of waiting
/// ([`bounds::PRIORITY_LEVEL`](crate::bounds::PRIORITY_LEVEL)). A more urgent task runs first
/// unless it became due later by more than its levels are worth. So no task starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(pub u8);

impl Priority {
    /// 32, which puts a task 96 minutes of waiting behind normal ones.
    pub const LOW: Self = Self(32);
    /// 128, the default.
    pub const NORMAL: Self = Self(128);
    /// 192, which puts a task 64 minutes of waiting before normal ones.
    pub const HIGH: Self = Self(192);
    /// 255, the highest priority, which puts a task 127 minutes of waiting before normal ones.
    pub const URGENT: Self = Self(255);
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}

/// The time at which a task becomes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At once. The default.
    #[default]
    Now,
    /// After this time, counted by the store's clock from the submission.
    After(Duration),
    /// At this time. A time in the past means at once.
    At(Timestamp),
}

/// The effect of a submit whose key an active task of the same kind already has.
///
/// While a key is [kept](UniqueKey::keep_for) after the end of a task, [`Skip`](Self::Skip),
/// [`Supersede`](Self::Supersede) and [`Requeue`](Self::Requeue) keep the ended task and submit
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDuplicate {
    /// Keeps the existing task. If the new task is more urgent and the existing one does not run,
    /// its priority is raised. The default.
    #[default]
    Skip,
    /// Inserts the new task. The existing task is cancelled, or asked to stop if it runs.
    Supersede,
    /// Keeps the existing task and returns [`Rejected`](crate::Submitted::Rejected).
    Reject,
    /// Keeps the existing task if it does not run. If it runs, the new task is inserted when it
    /// ends. A later submit replaces a task that waits for this.
    Requeue,
    /// Takes the key over from this task, which must have ended while its key is
    /// [kept](UniqueKey::keep_for). The new task is inserted if the key is free. The store rejects
    /// the submit with [`KeyTaken`](crate::Refusal::KeyTaken) if another task has the key, or if
    /// this task is active.
    TakeOver(TaskId),
}

/// A key that makes a task unique among the active tasks of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UniqueKey {
    /// The key, of 1 to 512 bytes.
    pub key: String,
    /// The effect of a submit whose key is taken. Default: [`OnDuplicate::Skip`].
    #[serde(default)]
    pub on_duplicate: OnDuplicate,
    /// The time for which the key stays taken after the end of the task. With zero, the default, it
    /// is free at once.
    #[serde(default)]
    pub keep_for: Duration,
}

/// The start of a time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TtlFrom {
    /// Counts from the submission. Ends when the first attempt starts. The default.
    #[default]
    Submission,
    /// Counts from the start of the first attempt. No further attempt starts after it.
    FirstAttempt,
}

/// A time to live: a task that has not started within it expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ttl {
    /// The length, with microsecond precision; more than zero.
    pub duration: Duration,
    /// The start of the time. Default: the submission.
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
    /// The queue in which the task waits. Default: `default`.
    pub queue: Name,
    /// The input of the handler, as bytes: at most 1 MiB, unless the store was opened with another
    /// limit. Default: empty.
    pub payload: Bytes,
    /// The urgency. Default: 128.
    pub priority: Priority,
    /// The time at which the task becomes due. Default: at once.
    pub when: When,
    /// The key that makes the task unique. Default: none.
    pub unique: Option<UniqueKey>,
    /// The time within which the task must start; after it the task expires. Default: no limit.
    pub ttl: Option<Ttl>,
    /// The longest time of one attempt, counted from the start of its handler; more than zero.
    /// Default: set by the engine.
    pub timeout: Option<Duration>,
    /// The longest time that an attempt may run without a heartbeat of its handler; more than zero.
    /// The attempt then counts as failed, although its process lives. Default: set by the handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout: Option<Duration>,
    /// The time after which no attempt runs. With a timeout, the earlier of the two applies. A task
    /// that waits for an attempt at this time expires. A task that is submitted later expires at
    /// once. Default: none.
    pub deadline: Option<Timestamp>,
    /// The time for which the ended task is kept, with its result and errors, in whichever state it
    /// ended. The first [prune](crate::Prune) after it removes the task; no earlier prune does.
    /// With zero, the next prune removes it. Default: prunes decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Duration>,
    /// The retry policy: the number of attempts and the delay between them. Default: that of the
    /// kind, the queue or the engine, in this order.
    pub retry: Option<RetryPolicy>,
    /// The group, such as a tenant, a bucket or an endpoint. Tasks of a group share
    /// [limits](crate::Limit). Default: none.
    pub group: Option<Name>,
    /// The time for which a schedule fired, if it submits the task. Only schedules set it. Default:
    /// none.
    pub scheduled_at: Option<Timestamp>,
    /// Tags by which the task can be found. Default: none.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// The tasks that must end before this one can start. Default: none.
    #[serde(default)]
    pub depends_on: Dependencies,
    /// The parent of the task. If the parent ends in a state other than completed, the task is
    /// cancelled. The children of a dead orchestration are an exception: they continue. Default:
    /// none.
    #[serde(default)]
    pub parent: Option<TaskId>,
    /// The bytes that one attempt is expected to move. An engine with a bandwidth for an
    /// [`IoKind`](crate::IoKind) counts them as soon as the attempt starts. Default: zero.
    #[serde(default, skip_serializing_if = "Io::is_none")]
    pub io: Io,
    /// Collects the task with others into a batch. Default: none, so the task runs by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
    /// The affinity key. A task prefers the session that last started a task with the same key, for
    /// the time that its [queue](crate::QueueSettings::affinity_wait) sets. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Name>,
    /// Marks an orchestration: its attempts are [turns](crate::Write::Turn), and it has a history
    /// and a mailbox. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub orchestration: bool,
    /// The reference under which the parent, an orchestration, receives the end of this task as a
    /// [message](crate::MessageBody::Ended). Requires a [parent](Self::parent). Default: none, so
    /// the parent receives no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<u64>,
}

impl NewTask {
    /// Creates a task of a kind with an empty payload and defaults for all other fields.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if `kind` is not a valid [`Name`].
    pub fn new(kind: impl AsRef<str>) -> Result<Self> {
        Ok(Self::of(Name::new(kind)?))
    }

    /// Creates a task of a kind with an empty payload and defaults for all other fields.
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

    /// Checks the task as a store does, so that a caller can detect invalid input before it
    /// submits. Dependencies and the parent are checked only by the store.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if:
    ///
    /// * the kind or the queue is reserved for Onward;
    /// * the payload is larger than `payload_limit` bytes;
    /// * the key is empty or longer than 512 bytes;
    /// * the tags are out of [bounds](Tags::check);
    /// * the time to live, the timeout or the heartbeat timeout is zero;
    /// * the task has more than [`bounds::DEPENDENCIES`] dependencies;
    /// * the [aggregation](Aggregate) is out of bounds, or the task has an option that a batch item
    ///   cannot have;
    /// * the task is an orchestration and has an option for attempts: an aggregation, a timeout, a
    ///   heartbeat timeout, a retry policy or a deadline;
    /// * the task has a [`report`](Self::report) and no parent;
    /// * the [retry policy](RetryPolicy::check) is invalid.
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

    /// Checks that the kind and the queue are not reserved. Tasks of `onward each`, scripts,
    /// deliveries to webhooks and orchestrations that keep signals for a start are the only ones
    /// with reserved names.
    fn check_names(&self) -> Result<()> {
        let is_line = *self.kind == *bounds::EACH_KIND
            && !self.orchestration
            && self.queue.starts_with(bounds::EACH_QUEUE_PREFIX);
        let is_script = *self.kind == *bounds::SCRIPT_KIND && !self.orchestration;
        let is_delivery = *self.kind == *bounds::WEBHOOK_KIND && !self.orchestration;
        if !is_line && !is_script && !is_delivery {
            self.kind.check_own("kind")?;
        }
        // Only a signal to a key without an orchestration creates one that is never due.
        let keeps_signals = self.orchestration
            && *self.queue == *bounds::UNSTARTED_QUEUE
            && matches!(self.when, When::At(Timestamp::MAX));
        if keeps_signals { Ok(()) } else { self.queue.check_own("queue") }
    }

    /// Rejects options for attempts on an orchestration. It has turns instead, so a store would
    /// ignore them.
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

    /// Returns the error of a field that is out of its range. `what` completes "a task has …".
    #[cold]
    fn wrong(&self, what: &str, remedy: &str) -> Error {
        Error::invalid(format!("a task of kind `{}` has {what}; {remedy}", self.kind))
    }
}

/// Checks the payload limit with which a store is to be opened.
///
/// # Errors
/// [`is_invalid`](Error::is_invalid) if it is more than [`bounds::PAYLOAD_BYTES_CEILING`].
pub(crate) fn check_payload_limit(bytes: usize) -> Result<()> {
    if bytes <= bounds::PAYLOAD_BYTES_CEILING {
        return Ok(());
    }
    let most = bounds::PAYLOAD_BYTES_CEILING;
    Err(Error::invalid(format!(
        "the payload limit is {bytes} bytes, and must be at most {most}; \
         keep larger data elsewhere and pass a reference"
    )))
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

/// Checks the size of a unique key.
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

/// A claimed task: everything that a worker needs to run one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedTask {
    /// The lease, which the worker passes in writes about this attempt.
    pub lease: Lease,
    /// The name that selects a handler.
    pub kind: Name,
    /// The queue of the task.
    pub queue: Name,
    /// The group of the task.
    pub group: Option<Name>,
    /// The weight of the queue.
    pub weight: u32,
    /// The input of the handler.
    pub payload: Bytes,
    /// The urgency.
    pub priority: Priority,
    /// The number of this attempt, counted from 1. Claims that were released do not count.
    pub attempt: u32,
    /// The time at which the store accepted the task.
    pub submitted_at: Timestamp,
    /// The time at which the task became due.
    pub run_at: Timestamp,
    /// The longest time of this attempt, counted from the start of its handler, if its submitter
    /// set one.
    pub timeout: Option<Duration>,
    /// The longest time without a heartbeat of the handler, if its submitter set one.
    pub heartbeat_timeout: Option<Duration>,
    /// The time at which this attempt must end.
    pub deadline: Option<Timestamp>,
    /// The time for which the task is kept after its end, if its submitter set one.
    pub retention: Option<Duration>,
    /// The task's own retry policy, if its submitter set one.
    pub retry: Option<RetryPolicy>,
    /// The time for which a schedule fired, if it submitted the task.
    pub scheduled_at: Option<Timestamp>,
    /// The tags.
    pub tags: Tags,
    /// The time to live, if its submitter set one.
    pub ttl: Option<Ttl>,
    /// The parent of the task.
    pub parent: Option<TaskId>,
    /// The [reference](NewTask::report) under which the parent receives the end of the task.
    pub report: Option<u64>,
    /// The checkpoint that an earlier attempt saved, by
    /// [`Write::AwaitChildren`](crate::Write::AwaitChildren) or
    /// [`Write::SaveCheckpoint`](crate::Write::SaveCheckpoint).
    pub checkpoint: Option<Bytes>,
    /// The bytes that this attempt is expected to move.
    pub expected_io: Io,
    /// The number of items of the batch; 0 if the task is not a batch.
    pub items: u32,
    /// The state and the new messages of the orchestration, if the task is one.
    pub instance: Option<Box<ClaimedInstance>>,
}

/// An error of an attempt, or of a task that ended between attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptError {
    /// The number of the attempt, counted from 1. If no attempt was running, it is the number of
    /// attempts used up so far (0 before the first).
    pub attempt: u32,
    /// The time of the error.
    pub at: Timestamp,
    /// The message of the handler or the store; cut at 8 KiB.
    pub message: String,
}

/// The progress that a running task reported last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The fraction done, from 0.0 to 1.0, if the handler knows it.
    pub fraction: Option<f32>,
    /// A description of the current step; cut at 1024 bytes.
    pub message: Option<String>,
    /// The time of the report.
    pub at: Timestamp,
    /// The bytes done and the total, if the handler counts bytes.
    #[serde(default)]
    pub bytes: Option<ByteProgress>,
}

/// A progress report in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteProgress {
    /// The number of bytes done. A store keeps at most 2⁶³ − 1.
    pub done: u64,
    /// The total number of bytes, if it is known. A store keeps at most 2⁶³ − 1.
    pub total: Option<u64>,
}

impl ByteProgress {
    /// Returns the fraction done, from 0.0 to 1.0; `None` if the total is unknown or zero.
    #[must_use]
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a fraction is for people")]
    pub fn fraction(self) -> Option<f32> {
        let total = self.total.filter(|total| *total > 0)?;
        Some((self.done as f64 / total as f64).min(1.0) as f32)
    }
}

/// The record of a task: everything that a store knows about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// The number.
    pub id: TaskId,
    /// The name that selects a handler.
    pub kind: Name,
    /// The queue of the task; for an ended task, the last one.
    pub queue: Name,
    /// The group.
    pub group: Option<Name>,
    /// The state.
    pub state: TaskState,
    /// The urgency.
    pub priority: Priority,
    /// The input of the handler; `None` if a listing excluded payloads.
    pub payload: Option<Bytes>,
    /// The key, if the task has one.
    pub key: Option<String>,
    /// The time at which the store accepted the task.
    pub submitted_at: Timestamp,
    /// The time at which the task is or was due.
    pub run_at: Timestamp,
    /// The time at which the task expires if no attempt starts before it.
    pub expires_at: Option<Timestamp>,
    /// The number of attempts used up, including a running one.
    pub attempts: u32,
    /// The time of the latest claim.
    pub started_at: Option<Timestamp>,
    /// The time at which the task ended.
    pub finished_at: Option<Timestamp>,
    /// The session that runs the task.
    pub session: Option<SessionId>,
    /// True if the running task was asked to stop. The mark stays on a task that has ended.
    pub cancel_requested: bool,
    /// The result, if it was read. The result of a batch item is that of its batch, as long as the
    /// batch is kept.
    #[serde(default, skip_serializing_if = "TaskResult::is_not_read")]
    pub result: TaskResult,
    /// The errors of attempts, oldest first. A task keeps at most 64
    /// ([`bounds::ERRORS_KEPT`](crate::bounds::ERRORS_KEPT)).
    pub errors: Vec<AttemptError>,
    /// The last progress report.
    pub progress: Option<Progress>,
    /// The tags.
    #[serde(default)]
    pub tags: Tags,
    /// The tasks for which a blocked task waits, by number.
    pub blocked_by: Vec<TaskId>,
    /// The parent of the task.
    pub parent: Option<TaskId>,
    /// The bytes that one attempt was expected to move; all counts are 0 if its submitter set none.
    #[serde(default, skip_serializing_if = "Io::is_none")]
    pub expected_io: Io,
    /// The bytes that the last recording attempt has moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<Io>,
    /// The aggregation, if the task is an item of a batch or of a pending batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
    /// The batch of which the task is an item. It may have been removed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<TaskId>,
    /// The number of items of the batch; 0 if the task is not a batch.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub items: u32,
    /// The affinity key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Name>,
    /// True if the task is an orchestration.
    #[serde(default, skip_serializing_if = "is_false")]
    pub orchestration: bool,
    /// The reference under which the parent, an orchestration, receives the end of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<u64>,
    /// The time for which the key stays taken after the end of the task.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub keep_key_for: Duration,
    /// The time to live, if its submitter set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
    /// The longest time of one attempt, if its submitter set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// The longest time without a heartbeat, if its submitter set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout: Option<Duration>,
    /// The time after which no attempt runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The time for which the task is kept after its end, if its submitter set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Duration>,
    /// The task's own retry policy, if its submitter set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// The time for which a schedule fired, if it submitted the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
}

/// Returns true for a value that serde leaves out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Returns true for a number that serde leaves out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(items: &u32) -> bool {
    *items == 0
}
