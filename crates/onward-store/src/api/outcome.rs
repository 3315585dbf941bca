//! Outcomes: the results of writes.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::bulk::BulkDone;
use crate::api::completion::CompletionToken;
use crate::api::limit::Limit;
use crate::api::name::Name;
use crate::api::orchestration::{Ended, Turned};
use crate::api::queue::{QueueMode, QueueSettings, QueueTurn};
use crate::api::schedule::{Fired, ScheduleSet};
use crate::api::task::{ClaimedTask, Lease, SessionId, TaskId, TaskState};
use crate::text::Shown;

/// The result of one [`Write`](crate::Write), with a form in JSON if the write has one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// The write was applied and has no further result.
    Done,
    /// The write was rejected and changed nothing.
    Refused(Refusal),
    /// The session was opened with this number.
    #[serde(skip)]
    SessionOpened(SessionId),
    /// The session's lease was extended.
    #[serde(skip)]
    Renewed {
        /// The running tasks of the session that are to be cancelled.
        cancel: Vec<TaskId>,
    },
    /// The result of a submit.
    Submitted(Submitted),
    /// The result of a claim.
    #[serde(skip)]
    Claimed(Claimed),
    /// The result of a wait for children.
    #[serde(skip)]
    AwaitsChildren {
        /// The new state of the task: blocked; waiting, if no child is live; or ended, if a child
        /// did not complete or a cancellation was requested.
        state: TaskState,
    },
    /// The result of a wait for external completion.
    #[serde(skip)]
    AwaitsCompletion {
        /// The new state of the task: blocked, or cancelled if that was requested.
        state: TaskState,
    },
    /// The result of an external completion.
    CompletedExternally {
        /// The new state of the task.
        state: TaskState,
    },
    /// The task is in the queue.
    Moved,
    /// The task runs. It moves to the queue after the attempt, unless it ends with it.
    MoveRequested,
    /// The result of a turn of an orchestration.
    #[serde(skip)]
    Turned(Turned),
    /// The result of an end of an attempt with a turn.
    #[serde(skip)]
    Ended(Ended),
    /// The result of a failed attempt.
    #[serde(skip)]
    Failed(Failed),
    /// The task, which did not run, has ended as cancelled.
    Cancelled,
    /// The task runs, and its worker is notified of the request to cancel. Or the task is an
    /// orchestration, and the request is a message in its mailbox.
    CancelRequested,
    /// Tasks were removed.
    Removed {
        /// The number of tasks removed.
        tasks: u64,
        /// True if the limit of the write left further tasks that match.
        more: bool,
    },
    /// The result of one chunk of a bulk change.
    Bulk(BulkDone),
    /// The settings of the queue after the change.
    QueueSet(QueueSettings),
    /// The limit of the scope after the change.
    LimitSet(Limit),
    /// The result of setting a schedule.
    ScheduleSet(ScheduleSet),
    /// The result of a schedule's firing.
    ScheduleFired(Fired),
    /// The result of a sweep.
    Swept(Swept),
    /// The document is stored.
    DocumentPut {
        /// The version of the document.
        version: u64,
        /// False if the document had this content, content type and index before.
        changed: bool,
    },
    /// The document does not exist any more.
    DocumentDeleted {
        /// The last version of the document; `None` if there was no document.
        version: Option<u64>,
    },
    /// The outcomes of the writes of a [`Write::All`](crate::Write::All), in order. None of them is
    /// a refusal.
    All(Vec<Outcome>),
}

/// The result of a submit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Submitted {
    /// The task was inserted.
    Inserted {
        /// The number of the new task.
        id: TaskId,
    },
    /// A task with the key is active, or its key is still kept after its end. Nothing was changed.
    Duplicate {
        /// The existing task.
        id: TaskId,
    },
    /// A task with the key has not started. Its priority was raised to that of the submitted task.
    PriorityRaised {
        /// The existing task.
        id: TaskId,
    },
    /// A task with the key runs. The submitted task is inserted when it ends.
    Requeued {
        /// The running task.
        id: TaskId,
    },
    /// The task was inserted and replaces the task that had the key.
    Superseded {
        /// The number of the new task.
        id: TaskId,
        /// The replaced task, which was cancelled or asked to stop.
        old: TaskId,
    },
    /// A task with the key exists, and the submitter requested a rejection
    /// ([`OnDuplicate::Reject`](crate::OnDuplicate::Reject)).
    Rejected {
        /// The existing task.
        id: TaskId,
    },
}

impl Submitted {
    /// Returns the task that represents the submit: the new one, or the one that has the key.
    #[must_use]
    pub fn id(self) -> TaskId {
        match self {
            Self::Inserted { id }
            | Self::Duplicate { id }
            | Self::PriorityRaised { id }
            | Self::Requeued { id }
            | Self::Superseded { id, .. }
            | Self::Rejected { id } => id,
        }
    }

    /// The names of the results, in the order of the variants.
    pub const NAMES: [&'static str; 6] =
        ["inserted", "duplicate", "priority_raised", "requeued", "superseded", "rejected"];

    /// Returns the name of the result, as the JSON form has it: one of [`NAMES`](Self::NAMES).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inserted { .. } => "inserted",
            Self::Duplicate { .. } => "duplicate",
            Self::PriorityRaised { .. } => "priority_raised",
            Self::Requeued { .. } => "requeued",
            Self::Superseded { .. } => "superseded",
            Self::Rejected { .. } => "rejected",
        }
    }

    /// Returns true if a new task was inserted.
    #[must_use]
    pub fn is_new(self) -> bool {
        matches!(self, Self::Inserted { .. } | Self::Superseded { .. })
    }
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Claimed {
    /// The tasks, in the order in which they are to start.
    pub tasks: Vec<ClaimedTask>,
    /// The running tasks of the session that are to be cancelled.
    pub cancel: Vec<TaskId>,
    /// The time until something changes without a write: a task becomes due or expires, a lease
    /// lapses, a pause ends, or a rate allows another start. `None` if nothing is pending.
    pub next_due: Option<Duration>,
    /// The time until a [rate](crate::Rate) allows the start of a task that this claim selects.
    /// `None` if no such task waits. It is included in [`next_due`](Self::next_due).
    pub next_token: Option<Duration>,
    /// The time until the first task below the claim's [lowest priority](crate::Claim::least)
    /// reaches it, if nothing else holds that task back. `None` if there is no such task, or if the
    /// claim returned as many tasks as it asked for. It is included in
    /// [`next_due`](Self::next_due).
    pub next_aged: Option<Duration>,
    /// The mode by which queues were chosen.
    pub mode: QueueMode,
    /// True if groups share queues by weights and minimums. Then the next group by its share starts
    /// first, instead of the most urgent task.
    pub groups_share: bool,
    /// The position in the round of the interleaved mode, for the claimer's next claim.
    pub turn: QueueTurn,
    /// A number that changes with every change of pauses, queue settings, limits or the mode. A
    /// task that was claimed under another number might not be claimable now, so a worker should
    /// release it if it has not started.
    pub configuration: u64,
    /// The count of [`Hint::work`](crate::Hint::work) that this claim has accounted for. As long as
    /// the store hints no higher count, another claim finds nothing that this one had room for.
    pub work_seen: u64,
}

/// The result of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    /// The new state of the task.
    pub state: TaskState,
    /// The lease of the next attempt, if the session keeps the task.
    pub lease: Option<Lease>,
}

/// The result of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Swept {
    /// The number of tasks and batches that became due.
    pub due: u64,
    /// The number of tasks that expired.
    pub expired: u64,
    /// The number of tasks taken back from lapsed sessions.
    pub lost: u64,
    /// The time until the next sweep is worthwhile, as in [`Claimed::next_due`].
    pub next_due: Option<Duration>,
}

/// The reason for which a store rejected a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// The input is invalid for every store, or exceeds a bound of this one. The message names the
    /// thing and the remedy.
    Invalid(String),
    /// The task does not exist, or its record was removed.
    TaskNotFound(TaskId),
    /// A dependency of the submitted task does not exist, or its record was removed.
    DependencyNotFound(TaskId),
    /// The queue does not exist.
    QueueNotFound(Name),
    /// The session has lapsed, was closed, or never existed.
    SessionLost(SessionId),
    /// The lease is not current: the task was taken back, has ended, or was claimed again.
    LeaseLost(Lease),
    /// The task has already ended.
    AlreadyEnded {
        /// The task.
        task: TaskId,
        /// The state in which it ended.
        state: TaskState,
    },
    /// The task has not ended, and only ended tasks can be retried.
    NotEnded {
        /// The task.
        task: TaskId,
        /// Its current state.
        state: TaskState,
    },
    /// The task runs, so it cannot be killed, deleted or made due.
    Running(TaskId),
    /// The task waits for something other than its due time, so it cannot be made due.
    Blocked(TaskId),
    /// Another task has the key.
    KeyTaken {
        /// The task that could not be retried, or whose key could not be taken over.
        task: TaskId,
        /// The task that has the key.
        by: TaskId,
    },
    /// Live tasks are in the queue.
    QueueInUse {
        /// The queue.
        queue: Name,
        /// The number of live tasks.
        live: u64,
    },
    /// The schedule does not exist.
    ScheduleNotFound(Name),
    /// The schedule has fired or was changed since the caller read it.
    ScheduleChanged(Name),
    /// No attempt of the task waits for external completion.
    NotAwaited {
        /// The task.
        task: TaskId,
        /// Its current state.
        state: TaskState,
    },
    /// The token names an earlier attempt.
    TokenOutdated(CompletionToken),
    /// The task is not an orchestration, so it has neither turns nor a mailbox.
    NotAnOrchestration(TaskId),
    /// The task is a step of a workflow run that has not ended. The run decides whether its steps
    /// are retried.
    StepOfRun {
        /// The task.
        task: TaskId,
        /// The run.
        run: TaskId,
    },
    /// The task is a run of a workflow. A run ends by its own turns: its history states what its
    /// steps did.
    RunOfWorkflow(TaskId),
    /// The history of the orchestration has another length than the turn states.
    HistoryMoved {
        /// The orchestration.
        task: TaskId,
        /// The number of events in its history.
        length: u64,
    },
    /// The turn cannot end the orchestration, because messages wait that its code was not offered.
    Unread {
        /// The orchestration.
        task: TaskId,
        /// The number of messages that wait.
        waiting: u64,
    },
    /// The mailbox of the orchestration is full ([`bounds::MAILBOX`](crate::bounds::MAILBOX), or
    /// [`bounds::UNSTARTED_EVENTS`](crate::bounds::UNSTARTED_EVENTS) before its start).
    MailboxFull(TaskId),
    /// No active orchestration of the kind has the key.
    NoneWithKey {
        /// The kind.
        kind: Name,
        /// The key.
        key: String,
    },
    /// The document does not have the version that the write expects.
    DocumentChanged {
        /// The collection.
        collection: Name,
        /// The key.
        key: String,
        /// The present version; `None` if there is no document.
        version: Option<u64>,
    },
    /// One write of a [`Write::All`](crate::Write::All) was rejected, so none was applied.
    InAll {
        /// The position of the rejected write, counted from 0.
        index: usize,
        /// The reason for which it was rejected.
        refusal: Box<Refusal>,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(message) => f.write_str(message),
            Self::TaskNotFound(task) => write!(f, "there is no task {task}; it may have been pruned from history"),
            Self::DependencyNotFound(task) => write!(
                f,
                "there is no task {task} to depend on; it was never submitted, or was removed from history after its end"
            ),
            Self::QueueNotFound(queue) => {
                write!(f, "there is no queue `{queue}`; a queue is made by the first submit to it")
            }
            Self::SessionLost(session) => {
                write!(f, "session {session} has lapsed or was closed; open a new one and claim again")
            }
            Self::LeaseLost(lease) => write!(
                f,
                "the lease of session {} on task {} no longer holds; the task was taken back or has ended",
                lease.session, lease.task
            ),
            Self::AlreadyEnded { task, state } => write!(f, "task {task} has ended already: {state}"),
            Self::NotEnded { task, state } => {
                write!(f, "task {task} is {state}; only a task that has ended can be tried again")
            }
            Self::Running(task) => write!(f, "task {task} runs; cancel it first, or wait for its end"),
            Self::Blocked(task) => {
                write!(f, "task {task} waits for other tasks; `onward task why {task}` names them")
            }
            Self::KeyTaken { task, by } => {
                write!(
                    f,
                    "nothing can go on under the key of task {task} while task {by} has it; wait for that one or cancel it"
                )
            }
            Self::QueueInUse { queue, live } => {
                write!(f, "the queue `{queue}` has {live} live tasks; purge it and let running ones end first")
            }
            Self::ScheduleNotFound(schedule) => {
                write!(f, "there is no schedule `{schedule}`; `onward schedule list` shows those there are")
            }
            Self::ScheduleChanged(schedule) => {
                write!(f, "the schedule `{schedule}` has fired or was changed meanwhile; read it again")
            }
            Self::NotAwaited { task, state: TaskState::Running } => {
                write!(
                    f,
                    "task {task} is still run by its handler, which has not left it to be finished; try again later"
                )
            }
            Self::NotAwaited { task, state } => {
                write!(f, "task {task} is {state} and does not wait to be finished from elsewhere")
            }
            Self::TokenOutdated(token) => {
                write!(f, "the token {token} is that of an earlier attempt, which is over; use the newest one")
            }
            Self::NotAnOrchestration(_)
            | Self::StepOfRun { .. }
            | Self::RunOfWorkflow(_)
            | Self::HistoryMoved { .. }
            | Self::Unread { .. }
            | Self::MailboxFull(_)
            | Self::NoneWithKey { .. } => self.fmt_of_orchestration(f),
            Self::DocumentChanged { collection, key, version } => fmt_of_document(f, collection, key, *version),
            Self::InAll { index, refusal } => {
                write!(f, "none of the writes was done: number {index} was refused: {refusal}")
            }
        }
    }
}

/// Writes the refusal of a write to a document that is missing or has another version.
fn fmt_of_document(f: &mut fmt::Formatter<'_>, collection: &Name, key: &str, version: Option<u64>) -> fmt::Result {
    let document = format!("document `{}` in the collection `{collection}`", Shown(key));
    match version {
        None => write!(f, "there is no {document}; put it first"),
        Some(version) => write!(f, "the {document} has version {version}; read it again"),
    }
}

impl Refusal {
    /// Writes a refusal that concerns an orchestration.
    fn fmt_of_orchestration(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnOrchestration(task) => {
                write!(f, "task {task} is no orchestration; only these have turns and take signals")
            }
            Self::StepOfRun { task, run } => write!(
                f,
                "task {task} is a step of run {run}, which decides about its steps; retry it there: `onward workflow retry {run}`"
            ),
            Self::RunOfWorkflow(task) => write!(
                f,
                "task {task} is a run of a workflow, which keeps what its steps did; cancel it: `onward workflow cancel {task}`"
            ),
            Self::HistoryMoved { task, length } => {
                write!(f, "the history of orchestration {task} has {length} events by now; read it again")
            }
            Self::Unread { task, waiting } => write!(
                f,
                "orchestration {task} cannot end while {waiting} messages wait that its code was not offered; offer them to the code first"
            ),
            Self::MailboxFull(task) => write!(
                f,
                "orchestration {task} has {} messages that it has not taken in, which is the limit; try again later",
                crate::bounds::MAILBOX
            ),
            Self::NoneWithKey { kind, key } => write!(
                f,
                "no active orchestration of kind `{kind}` has the key `{}`; start it first, or start it with the signal",
                Shown(key)
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}
