//! What writes answer.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::api::bulk::BulkDone;
use crate::api::completion::CompletionToken;
use crate::api::limit::Limit;
use crate::api::name::Name;
use crate::api::orchestration::Turned;
use crate::api::queue::{QueueMode, QueueSettings, QueueTurn};
use crate::api::schedule::{Fired, ScheduleSet};
use crate::api::task::{ClaimedTask, Lease, SessionId, TaskId, TaskState};
use crate::text::Shown;

/// What became of one [`Write`](crate::Write).
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was done, and there is no more to say.
    Done,
    /// It was not done and left no trace.
    Refused(Refusal),
    /// A session is open under this number.
    SessionOpened(SessionId),
    /// The session's lease was extended.
    Renewed {
        /// Its running tasks that somebody wants stopped.
        cancel: Vec<TaskId>,
    },
    /// What became of a submitted task.
    Submitted(Submitted),
    /// What a claim handed out.
    Claimed(Claimed),
    /// Where a task stands that was to wait for its children: blocked; waiting, if none was live;
    /// or ended, because of a child that did not complete or because its cancellation was
    /// requested.
    AwaitsChildren {
        /// Its state now.
        state: TaskState,
    },
    /// Where a task stands that was to wait to be finished from elsewhere: blocked, or cancelled,
    /// if that was requested.
    AwaitsCompletion {
        /// Its state now.
        state: TaskState,
    },
    /// Where a task stands that somebody finished from elsewhere.
    Finished {
        /// Its state now.
        state: TaskState,
    },
    /// The task is in the queue.
    Moved,
    /// The task runs, and goes on in the queue if it does not end with the attempt that runs.
    MoveRequested,
    /// What a turn of an orchestration did.
    Turned(Turned),
    /// Where a task stands after a failed attempt.
    Failed(Failed),
    /// A task that had not started has ended.
    Cancelled,
    /// The worker of a running task will be told.
    CancelRequested,
    /// Tasks were removed.
    Removed {
        /// How many.
        tasks: u64,
        /// Whether the limit left some that would have been removed too.
        more: bool,
    },
    /// What a chunk of a change of many tasks did.
    Bulk(BulkDone),
    /// How the queue is worked off from now on.
    QueueSet(QueueSettings),
    /// What limits the scope from now on.
    LimitSet(Limit),
    /// What setting a schedule did.
    ScheduleSet(ScheduleSet),
    /// What a schedule's firing did.
    ScheduleFired(Fired),
    /// What time had brought.
    Swept(Swept),
    /// The outcomes of the members of a [`Write::All`](crate::Write::All), in order; none of them
    /// is a refusal.
    All(Vec<Outcome>),
}

/// What became of a submitted task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Submitted {
    /// It is a task of its own.
    Inserted {
        /// Its number.
        id: TaskId,
    },
    /// A task with its key exists, or ended so recently that the key is still kept; nothing was
    /// changed.
    Duplicate {
        /// The existing task.
        id: TaskId,
    },
    /// A task with its key waits, and is now as urgent as the new one.
    PriorityRaised {
        /// The existing task.
        id: TaskId,
    },
    /// A task with its key is running; the new one is taken when that ends.
    Requeued {
        /// The running task.
        id: TaskId,
    },
    /// It took the place of the task that had its key.
    Superseded {
        /// Its number.
        id: TaskId,
        /// The task that was cancelled, or asked to stop.
        old: TaskId,
    },
    /// A task with its key exists, and the submitter asked for a rejection.
    Rejected {
        /// The existing task.
        id: TaskId,
    },
}

impl Submitted {
    /// The task that now stands for what was submitted: the new one, or the one that has its key.
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

    /// Whether a new task was made.
    #[must_use]
    pub fn is_new(self) -> bool {
        matches!(self, Self::Inserted { .. } | Self::Superseded { .. })
    }
}

/// What a claim handed out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Claimed {
    /// The tasks, in the order in which they are to start.
    pub tasks: Vec<ClaimedTask>,
    /// Tasks this session runs that somebody wants stopped.
    pub cancel: Vec<TaskId>,
    /// How long until time alone changes something (a task becomes due or expires, a lease lapses,
    /// a pause ends, a rate lets another start); `None` if nothing is pending.
    pub next_due: Option<Duration>,
    /// How long until a [rate](crate::Rate) lets a task start that this claim would take otherwise;
    /// `None` if no such task waits. It is in `next_due` too.
    pub next_token: Option<Duration>,
    /// How long until the first of the tasks that it left because they are not [urgent
    /// enough](crate::Claim::least) will be, if nothing else holds that back; `None` if there is
    /// none, and where it handed out as many as were asked for. It is in `next_due` too.
    pub next_aged: Option<Duration>,
    /// How it was chosen among queues.
    pub mode: QueueMode,
    /// Whether groups share queues by weights and minimums: then it is not the most urgent that
    /// starts first, but the one whose group's turn it is.
    pub groups_share: bool,
    /// Where the round of the claimer stands now, for its next claim.
    pub turn: QueueTurn,
    /// Counts changes of pauses, weights, limits and the mode: what was claimed when it was another
    /// number might not be claimed now, and what of it has not started had better be given back.
    pub configuration: u64,
}

/// Where a task stands after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    /// Its state now.
    pub state: TaskState,
    /// The lease of the next attempt, where the session kept the task.
    pub lease: Option<Lease>,
}

/// What time had brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Tasks that became due.
    pub due: u64,
    /// Tasks that expired.
    pub expired: u64,
    /// Leases taken back from sessions that lapsed.
    pub lost: u64,
    /// As in [`Claimed::next_due`].
    pub next_due: Option<Duration>,
}

/// Why a write was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Input that no store accepts. The text names the thing and the remedy.
    Invalid(String),
    /// There is no such task.
    TaskNotFound(TaskId),
    /// There is no such task for another to depend on.
    DependencyNotFound(TaskId),
    /// There is no such queue.
    QueueNotFound(Name),
    /// The session has lapsed, was closed, or never was.
    SessionLost(SessionId),
    /// The lease no longer holds: the task was taken back, ended, or claimed again.
    LeaseLost(Lease),
    /// The task has ended already.
    AlreadyEnded {
        /// The task.
        task: TaskId,
        /// How it ended.
        state: TaskState,
    },
    /// The task has not ended.
    NotEnded {
        /// The task.
        task: TaskId,
        /// Where it stands.
        state: TaskState,
    },
    /// The task runs, and so cannot be killed, deleted or made due.
    Running(TaskId),
    /// The task waits for other tasks, and so cannot be made due.
    Blocked(TaskId),
    /// Another task has the key by now.
    KeyTaken {
        /// The task that could not be tried again, or whose key could not be taken over.
        task: TaskId,
        /// The one that has its key.
        by: TaskId,
    },
    /// There are live tasks in the queue.
    QueueInUse {
        /// The queue.
        queue: Name,
        /// How many.
        live: u64,
    },
    /// There is no such schedule.
    ScheduleNotFound(Name),
    /// The schedule has fired, or was changed, since it was read.
    ScheduleChanged(Name),
    /// No attempt of the task waits to be finished from elsewhere.
    NotAwaited {
        /// The task.
        task: TaskId,
        /// Where it stands.
        state: TaskState,
    },
    /// The token is that of an earlier attempt.
    TokenOutdated(CompletionToken),
    /// The task is no orchestration, so it has neither turns nor a mailbox.
    NotAnOrchestration(TaskId),
    /// The history of the orchestration is not what the turn was made from.
    HistoryMoved {
        /// The orchestration.
        task: TaskId,
        /// How many events its history has.
        length: u64,
    },
    /// Messages wait for the orchestration that its code was not offered, so a turn cannot end it.
    Unread {
        /// The orchestration.
        task: TaskId,
        /// The number of messages that wait.
        waiting: u64,
    },
    /// Too many messages wait for the orchestration.
    MailboxFull(TaskId),
    /// No active orchestration of the kind has the key.
    NoneWithKey {
        /// The kind.
        kind: Name,
        /// The key.
        key: String,
    },
    /// A member of a [`Write::All`](crate::Write::All) was refused, and so none was done.
    Member {
        /// Which one, counted from 0.
        index: usize,
        /// Why.
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
            | Self::HistoryMoved { .. }
            | Self::Unread { .. }
            | Self::MailboxFull(_)
            | Self::NoneWithKey { .. } => self.fmt_of_orchestration(f),
            Self::Member { index, refusal } => {
                write!(f, "none of the writes was done: number {index} was refused: {refusal}")
            }
        }
    }
}

impl Refusal {
    fn fmt_of_orchestration(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnOrchestration(task) => {
                write!(f, "task {task} is no orchestration; only these have turns and take signals")
            }
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
