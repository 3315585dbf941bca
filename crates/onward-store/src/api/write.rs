//! The verbs of change.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::api::bulk::Bulk;
use crate::api::completion::{CompletionToken, CompletionWait, Finish};
use crate::api::dependency::OnDependencyFailure;
use crate::api::io::Io;
use crate::api::limit::SetLimit;
use crate::api::name::Name;
use crate::api::orchestration::{Signal, Turn};
use crate::api::queue::{QueueChoice, QueueMode, SetQueue};
use crate::api::schedule::{FireSchedule, NextFiring, SetSchedule};
use crate::api::served::Served;
use crate::api::task::{ByteProgress, Lease, NewTask, Priority, SessionId, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::rules::order::{Place, last_place};

/// One change of state, as a value.
///
/// Each write is atomic in itself and gets its own [`Outcome`](crate::Outcome); the writes of one
/// [`apply`](crate::Store::apply) act in list order and become durable together. A write that
/// cannot be done answers [`Outcome::Refused`](crate::Outcome::Refused), leaves no trace and
/// disturbs no neighbour. Every write sees the effects of those before it, and a concurrent
/// caller's write acts wholly before or wholly after it.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Registers a worker. Requires a lease from 100 ms to 24 h, and no more than
    /// [`bounds::SERVED_NAMES`](crate::bounds::SERVED_NAMES) names of what it serves. Answers
    /// [`SessionOpened`](crate::Outcome::SessionOpened) with a number never used before. A session
    /// that holds nothing need not be renewed, but one whose lease has been over for [a
    /// day](crate::bounds::SESSION_KEPT) is forgotten; whoever comes back then opens another.
    OpenSession(OpenSession),

    /// Extends the session's lease to its full length from now, or leaves it where it has lost a
    /// tenth at the most. Requires a session that has not lapsed or been closed (else
    /// [`SessionLost`](crate::Refusal::SessionLost)). Answers [`Renewed`](crate::Outcome::Renewed)
    /// with the session's tasks that somebody wants cancelled.
    RenewSession {
        /// The session.
        session: SessionId,
    },

    /// Ends a session: what it still holds goes back to waiting as [`Release`](Self::Release) would
    /// do. Answers [`Done`](crate::Outcome::Done); closing a session that is gone is `Done` too.
    CloseSession {
        /// The session.
        session: SessionId,
    },

    /// Accepts a task. Requires valid input ([`NewTask::check`]). Answers
    /// [`Submitted`](crate::Outcome::Submitted), which says whether the task was inserted or what
    /// became of it under its key. Once durable, a concurrent claim may take it.
    Submit(Box<NewTask>),

    /// Hands due tasks to a session, of a queue the most urgent first, then the oldest, and among
    /// queues as the [mode](QueueMode) says; first does what [`Sweep`](Self::Sweep) does, and
    /// renews the session. Requires a live session. Answers [`Claimed`](crate::Outcome::Claimed).
    /// Two claims never hand out the same task, and together they never make more tasks of a queue
    /// run than its [concurrency](crate::QueueSettings::concurrency) allows, nor more of anything
    /// than its [limit](crate::Limit).
    Claim(Claim),

    /// Ends an attempt well and the task with it. Requires a lease that holds (else
    /// [`LeaseLost`](crate::Refusal::LeaseLost)) and a result within the payload limit. Answers
    /// [`Done`](crate::Outcome::Done). A task whose cancellation was requested but that completed
    /// all the same is completed.
    Complete {
        /// The right to do it.
        lease: Lease,
        /// What the handler answers, at most as large as a payload may be.
        result: Option<Bytes>,
    },

    /// Ends an attempt with an error. Requires a lease that holds. Answers
    /// [`Failed`](crate::Outcome::Failed), which says where the task stands now. A task whose
    /// cancellation was requested is cancelled instead of being tried again.
    Fail {
        /// The right to do it.
        lease: Lease,
        /// What went wrong; cut at 8 KiB.
        error: String,
        /// What becomes of the task.
        next: AfterFailure,
    },

    /// Gives a claimed task back as if it had not been claimed: no attempt is used up, and it
    /// expires when it would have expired before the claim, at once if that has passed. Whether its
    /// handler had begun makes no difference. Requires a lease that holds. Answers
    /// [`Done`](crate::Outcome::Done). A task whose cancellation was requested is cancelled.
    Release {
        /// The right to do it.
        lease: Lease,
        /// How long it waits before it is due again; zero for at once.
        after: Duration,
    },

    /// Ends an attempt for a while: the task is blocked until every child that it has, also those
    /// that come meanwhile, has ended, and then waits for one further attempt, whose claim hands
    /// `memo` out. It uses no attempt up, and its time to live stands. Requires a lease that holds,
    /// a memo within the payload limit, at most
    /// [`bounds::AWAITED_CHILDREN`](crate::bounds::AWAITED_CHILDREN) live children, and that none
    /// of these waits for this task. Answers [`AwaitsChildren`](crate::Outcome::AwaitsChildren). A
    /// task whose cancellation was requested is cancelled.
    AwaitChildren {
        /// The right to do it.
        lease: Lease,
        /// What the next attempt is to know.
        memo: Bytes,
        /// What to do when a child of this attempt, or one that is live, ends otherwise than
        /// completed: cancel or fail this task at once, and with it the other children, or go on.
        on_failure: OnDependencyFailure,
    },

    /// Ends an attempt, and the task with it, as cancelled: the worker's answer to a request.
    /// Requires a lease that holds. Answers [`Done`](crate::Outcome::Done).
    ConfirmCancel {
        /// The right to do it.
        lease: Lease,
        /// What the task says of why, as its last error.
        reason: String,
    },

    /// Keeps how far a running task is, to be seen from outside. Requires a lease that holds.
    /// Answers [`Done`](crate::Outcome::Done). A later report replaces an earlier one; the last one
    /// stays with the ended task.
    Report {
        /// The right to do it.
        lease: Lease,
        /// From 0.0 to 1.0 (clamped), if known.
        fraction: Option<f32>,
        /// What it is doing; cut at 1024 bytes.
        message: Option<String>,
        /// How many bytes it has done, and of how many, if it counts them.
        bytes: Option<ByteProgress>,
    },

    /// Keeps what the next attempt of a running task is to know, whose claim hands it out as
    /// [`memo`](crate::ClaimedTask::memo). Requires a lease that holds, a memo within the payload
    /// limit, and that the task is no orchestration, which has a history. Answers
    /// [`Done`](crate::Outcome::Done). A later one replaces an earlier one, also that of an
    /// [`AwaitChildren`](Self::AwaitChildren); it is forgotten with the end of the task.
    KeepMemo {
        /// The right to do it.
        lease: Lease,
        /// What the next attempt is to know.
        memo: Bytes,
    },

    /// Keeps what a running task has moved so far. Requires a lease that holds. Answers
    /// [`Done`](crate::Outcome::Done). A later one replaces an earlier one, also that of an earlier
    /// attempt; the last one stays with the ended task.
    RecordIo {
        /// The right to do it.
        lease: Lease,
        /// What this attempt has moved.
        io: Io,
    },

    /// Ends a task that has not started, or asks the worker of a running one to stop. An
    /// orchestration that has begun hears of it in a [message](crate::MessageBody::Cancel), and
    /// ends as it likes. Answers [`Cancelled`](crate::Outcome::Cancelled) or
    /// [`CancelRequested`](crate::Outcome::CancelRequested); refuses an unknown task and one that
    /// has ended.
    Cancel {
        /// The task.
        task: TaskId,
    },

    /// Makes an ended task wait again under its old number with its attempts counted from zero; its
    /// errors are kept. Requires a task that has ended and whose key, if it has one, is free.
    /// Answers [`Done`](crate::Outcome::Done).
    Retry {
        /// The task.
        task: TaskId,
    },

    /// Makes a scheduled task due now, whatever it waited for: its time, or the next attempt. It
    /// takes its place among those that became due now. Requires a task that is scheduled, or due
    /// already, which changes nothing (else [`Running`](crate::Refusal::Running),
    /// [`Blocked`](crate::Refusal::Blocked) or [`AlreadyEnded`](crate::Refusal::AlreadyEnded)).
    /// Answers [`Done`](crate::Outcome::Done).
    RunNow {
        /// The task.
        task: TaskId,
    },

    /// Ends a task that does not run as a dead letter, with an error that says so: it is kept, is
    /// seen among those that somebody should look at, and can be tried again. Requires a task that
    /// waits, is scheduled or blocked (else [`Running`](crate::Refusal::Running) or
    /// [`AlreadyEnded`](crate::Refusal::AlreadyEnded)). Answers [`Done`](crate::Outcome::Done).
    Kill {
        /// The task.
        task: TaskId,
    },

    /// Removes a task without a trace, as [`Purge`](Self::Purge) does. Requires a task that does
    /// not run (else [`Running`](crate::Refusal::Running)). Answers [`Done`](crate::Outcome::Done).
    Delete {
        /// The task.
        task: TaskId,
    },

    /// Stops claims of what `scope` names until it is resumed, or until a moment. What runs goes
    /// on. Answers [`Done`](crate::Outcome::Done). Pausing again replaces the moment. Pauses of
    /// different scopes combine.
    Pause {
        /// What is paused.
        scope: Scope,
        /// When the pause ends by itself.
        until: Option<Timestamp>,
    },

    /// Ends a pause. Answers [`Done`](crate::Outcome::Done), also where there was none.
    Resume {
        /// What was paused.
        scope: Scope,
    },

    /// Changes how a queue is worked off: its weight, its concurrency, how long its tasks wait for
    /// the session that their series prefers. What runs goes on, also beyond a new limit. Requires
    /// values within their ranges; a queue that is not there is made. Answers
    /// [`QueueSet`](crate::Outcome::QueueSet) with what holds now.
    SetQueue(SetQueue),

    /// Changes how claims choose among queues, where they do not say so themselves. Answers
    /// [`Done`](crate::Outcome::Done).
    SetQueueMode(QueueMode),

    /// Changes the limit of a scope: how many of its tasks run at once, how fast they start, or
    /// both. What runs goes on, also beyond a new limit. The concurrency of a queue is the same as
    /// that of [`SetQueue`](Self::SetQueue). Requires values within their ranges; a queue or kind
    /// that is not there is made. Answers [`LimitSet`](crate::Outcome::LimitSet) with what holds
    /// now. A limit of nothing is none; a group then falls under what its name begins with.
    SetLimit(SetLimit),

    /// Removes tasks of a queue without a trace, oldest first: never running ones. Answers
    /// [`Removed`](crate::Outcome::Removed), which says whether there are more.
    Purge {
        /// The queue.
        queue: Name,
        /// Which of its tasks; [`TaskState::Running`] is refused.
        states: Vec<TaskState>,
        /// At most this many.
        limit: usize,
    },

    /// Forgets a queue, its pause, weight and limit. Requires that no live task is in it (else
    /// [`QueueInUse`](crate::Refusal::QueueInUse)). Its ended tasks stay. A later submit makes it
    /// again. Answers [`Done`](crate::Outcome::Done).
    DeleteQueue {
        /// The queue.
        queue: Name,
    },

    /// Removes ended tasks from history: first those whose own
    /// [retention](crate::NewTask::retention) is over, then of those without one those that ended
    /// longer ago than `older_than`, and the oldest beyond `keep`. Oldest end first. It also
    /// forgets the events up to the last end that it removed, in whole calls, but none from the
    /// first end on of a task that stays and has no retention of its own. Answers
    /// [`Removed`](crate::Outcome::Removed).
    Prune(Prune),

    /// Makes a schedule, or changes the one of that name; a paused one stays paused. Requires valid
    /// input, room for another schedule, and that an existing one comes from the same provider.
    /// Answers [`ScheduleSet`](crate::Outcome::ScheduleSet); one that is so already is left as it
    /// is.
    SetSchedule(Box<SetSchedule>),

    /// Forgets a schedule and what it holds; its tasks stay. Requires that it is there (else
    /// [`ScheduleNotFound`](crate::Refusal::ScheduleNotFound)). Answers
    /// [`Done`](crate::Outcome::Done).
    DeleteSchedule {
        /// The schedule.
        schedule: Name,
    },

    /// Lets a schedule fire no more until it is resumed. Requires that it is there. Answers
    /// [`Done`](crate::Outcome::Done), also where it is paused already.
    PauseSchedule {
        /// The schedule.
        schedule: Name,
    },

    /// Lets a paused schedule fire again. Requires that it is there and has this revision (else
    /// [`ScheduleChanged`](crate::Refusal::ScheduleChanged)). Answers
    /// [`Done`](crate::Outcome::Done); one that is not paused is left as it is.
    ResumeSchedule {
        /// The schedule.
        schedule: Name,
        /// Its revision when `next` was found.
        revision: u64,
        /// Its next firing; `None` if it is over.
        next: Option<NextFiring>,
    },

    /// Submits the tasks of a schedule's firings, as the overlap policy says, and says what is
    /// next, whether it is paused or not. Requires that the schedule is there and has this revision
    /// (else [`ScheduleChanged`](crate::Refusal::ScheduleChanged)): of many who fire one schedule
    /// at once, one does. Answers [`ScheduleFired`](crate::Outcome::ScheduleFired). A task that no
    /// submit would take is no refusal: the schedule keeps why, and goes on.
    FireSchedule(Box<FireSchedule>),

    /// Does what time has brought: ends pauses, makes due tasks wait, takes back what lapsed
    /// sessions held, expires what is past its time to live, forgets which sessions are preferred
    /// by [series](crate::NewTask::affinity) that are long unused, and sessions that have held
    /// nothing and given no sign of life [for long](crate::bounds::SESSION_KEPT). At most 1024 of
    /// each; the rest is due at once, or with the next. Answers [`Swept`](crate::Outcome::Swept).
    Sweep,

    /// Cancels, tries again, deletes, runs at once, kills or moves tasks that a filter selects, the
    /// newest first, a chunk at a time. Answers [`Bulk`](crate::Outcome::Bulk), which says whether
    /// there is more. A chunk looks at no more than 16 384 numbers of tasks, so that it may do
    /// nothing and have more to look at. Tasks that are submitted after the first chunk are not
    /// looked at.
    Bulk(Box<Bulk>),

    /// Ends an attempt without an answer: somebody will finish it from elsewhere, by
    /// [`Finish`](Self::Finish). The task is blocked until then, holds no session and no limit, and
    /// is neither run nor lost; its time to live does not run meanwhile. If it is not finished in
    /// time, the attempt has failed and the retry policy says what follows. Requires a lease that
    /// holds and a valid policy. Answers [`AwaitsCompletion`](crate::Outcome::AwaitsCompletion). A
    /// task whose cancellation was requested is cancelled.
    AwaitCompletion {
        /// The right to do it.
        lease: Lease,
        /// For how long, and what follows if it fails.
        wait: CompletionWait,
    },

    /// Finishes, from anywhere, an attempt that [waits](Self::AwaitCompletion) for that, or extends
    /// its time; by its token it can be completed while it still runs, too. Requires an attempt
    /// that waits (else [`NotAwaited`](crate::Refusal::NotAwaited)), that it is the one that the
    /// token names (else [`TokenOutdated`](crate::Refusal::TokenOutdated)), and a result within the
    /// payload limit. Answers [`Finished`](crate::Outcome::Finished).
    Finish {
        /// Which attempt.
        token: CompletionToken,
        /// How.
        finish: Finish,
    },

    /// Moves a task to another queue, which is made if it is not there: at once, with its place, if
    /// nobody runs it. The attempt of a running one goes on and counts in the queue where it
    /// started, as does an end of the task; if the task goes on after it, it does so in the other
    /// queue, and a session does not keep it. Asking again replaces the queue, and asking for the
    /// one where the task is takes it back. Requires a task that has not ended. Answers
    /// [`Moved`](crate::Outcome::Moved) or [`MoveRequested`](crate::Outcome::MoveRequested).
    Move {
        /// The task.
        task: TaskId,
        /// The queue.
        queue: Name,
    },

    /// Says that a session starts no more tasks: no [series](crate::NewTask::affinity) prefers it
    /// any longer, so what was reserved for it goes to the others at once. What it runs it goes on
    /// with. Requires a session that is open. Answers [`Done`](crate::Outcome::Done). A claim by it
    /// all the same is one as any.
    Retire {
        /// The session.
        session: SessionId,
    },

    /// Writes a turn of an orchestration: appends to its history, forgets the messages that it has
    /// taken in, submits tasks, cancels others, changes its tags, and goes on as it says; a turn
    /// uses no attempt up. The end of a task submitted with a [report](NewTask::report) comes back
    /// as a message, and so does that it was not taken. Requires a lease that holds, that the task
    /// is an orchestration (else [`NotAnOrchestration`](crate::Refusal::NotAnOrchestration)), that
    /// its history has the length that the turn says (else
    /// [`HistoryMoved`](crate::Refusal::HistoryMoved)), and input within the limits. Answers
    /// [`Turned`](crate::Outcome::Turned).
    ///
    /// A turn that ends the orchestration as completed, failed or cancelled must have consumed
    /// every message (else [`Unread`](crate::Refusal::Unread)), unless it [leaves them
    /// unread](crate::Turn::leaves_unread).
    Turn(Box<Turn>),

    /// Sends an orchestration something, to be taken in by its next turn; it waits for a claim, if
    /// it was parked. Requires that it has not ended (else
    /// [`AlreadyEnded`](crate::Refusal::AlreadyEnded); where a key names it,
    /// [`NoneWithKey`](crate::Refusal::NoneWithKey)), a payload within the limit, and that no more
    /// than [`bounds::MAILBOX`](crate::bounds::MAILBOX) messages wait for it (else
    /// [`MailboxFull`](crate::Refusal::MailboxFull)). Answers [`Done`](crate::Outcome::Done).
    ///
    /// One to a key [or to what starts with it](crate::Recipient::KeyOrStart) is kept where none
    /// has the key: an orchestration that is [never started](crate::Hold::Unstarted) takes the key
    /// for it, in the queue [`bounds::UNSTARTED_QUEUE`](crate::bounds::UNSTARTED_QUEUE), and gives
    /// it and what it was sent to the first that is submitted with that key. It expires when the
    /// time to live of what it was sent last is over, and is listed, cancelled and deleted as every
    /// task. It takes [`bounds::UNSTARTED_EVENTS`](crate::bounds::UNSTARTED_EVENTS) messages, and
    /// there are [`bounds::UNSTARTED_KEYS`](crate::bounds::UNSTARTED_KEYS) of them at the most.
    Signal(Box<Signal>),

    /// Ends an orchestration as cancelled, at once and whatever it does, without its code hearing
    /// of it: its lease holds no longer, and its children are cancelled. Requires an orchestration
    /// (else [`NotAnOrchestration`](crate::Refusal::NotAnOrchestration)) that has not ended.
    /// Answers [`Cancelled`](crate::Outcome::Cancelled).
    Terminate {
        /// The orchestration.
        task: TaskId,
        /// What it says of why, as its last error; cut at 8 KiB.
        reason: String,
    },

    /// Has an orchestration have no turn until it is [resumed](Self::ResumeOrchestration): it is
    /// blocked meanwhile, and what comes for it, also that it is to be cancelled, is kept. A turn
    /// that is under way is written to its end; what it waits for goes on. Requires an
    /// orchestration (else [`NotAnOrchestration`](crate::Refusal::NotAnOrchestration)) that has not
    /// ended. Answers [`Done`](crate::Outcome::Done), also where it is paused.
    PauseOrchestration {
        /// The orchestration.
        task: TaskId,
    },

    /// Lets a paused orchestration go on: what has come meanwhile, and timers that came due, have
    /// it have a turn. Requires an orchestration that has not ended. Answers
    /// [`Done`](crate::Outcome::Done), also where it is not paused.
    ResumeOrchestration {
        /// The orchestration.
        task: TaskId,
    },

    /// Several writes as one: in order, all or nothing. If a member is refused, none of them
    /// happened and the outcome is [`Refusal::Member`](crate::Refusal::Member). Members may not be
    /// `All` themselves. At most 100 000. Answers [`All`](crate::Outcome::All).
    All(Vec<Write>),
}

/// How a worker registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// A name for people, such as host and process id; cut at 128 bytes.
    pub name: String,
    /// How long its claims hold without a sign of life.
    pub lease: Duration,
    /// What it takes, for people: [`Store::why`](crate::Store::why) tells where nobody takes a
    /// task.
    pub serves: Served,
}

impl OpenSession {
    /// A worker that serves everything.
    #[must_use]
    pub fn new(name: impl Into<String>, lease: Duration) -> Self {
        Self { name: name.into(), lease, serves: Served::default() }
    }
}

/// What a worker asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who asks.
    pub session: SessionId,
    /// From which queues.
    pub queues: QueueSelection,
    /// Of which kinds.
    pub kinds: KindSelection,
    /// Whether orchestrations of these kinds are taken, too. An engine whose handlers are for all
    /// kinds leaves them out, and claims by name those whose code it has.
    pub orchestrations: bool,
    /// How many tasks in all, at most 4096.
    pub limit: usize,
    /// How to choose among queues.
    pub choice: QueueChoice,
    /// Only tasks that count as at least so urgent: by their own priority, and a level more for
    /// each minute ([`bounds::PRIORITY_LEVEL`](crate::bounds::PRIORITY_LEVEL)) that they have been
    /// due. What is left costs nothing. `None` for any.
    pub least: Option<Priority>,
}

impl Claim {
    /// A claim of tasks of every kind from every queue, by the store's mode.
    #[must_use]
    pub fn any(session: SessionId, limit: usize) -> Self {
        let (queues, kinds) = (QueueSelection::All, KindSelection::All);
        Self { session, queues, kinds, orchestrations: true, limit, choice: QueueChoice::default(), least: None }
    }

    /// The last place in line from which it takes.
    pub(crate) fn last_place(&self, now: Timestamp) -> Option<Place> {
        self.least.map(|least| last_place(least, now))
    }

    /// Returns whether it takes tasks of a queue and a kind: orchestrations, or others.
    #[must_use]
    pub fn selects(&self, queue: &Name, kind: &Name, is_orchestration: bool) -> bool {
        let queue_is_selected = match &self.queues {
            QueueSelection::All => true,
            QueueSelection::Only(queues) => queues.iter().any(|(name, limit)| name == queue && *limit > 0),
        };
        queue_is_selected && self.selects_kind(kind, is_orchestration)
    }

    /// Returns whether it takes tasks of a kind, from whatever queue.
    pub(crate) fn selects_kind(&self, kind: &Name, is_orchestration: bool) -> bool {
        (self.orchestrations || !is_orchestration) && self.kinds.selects(kind)
    }
}

/// From which queues a claim takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum QueueSelection {
    /// From every queue there is.
    #[default]
    All,
    /// From these, at most so many from each.
    Only(Vec<(Name, usize)>),
}

/// Of which kinds a claim takes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KindSelection {
    /// Every kind but those that are [reserved](Name::is_reserved).
    #[default]
    All,
    /// These kinds.
    Only(Vec<Name>),
    /// Some kinds, and the kinds that begin with some texts. Boxed, so that a write is no larger
    /// for it.
    Matching(Box<KindMatch>),
}

/// Some kinds, and the kinds that begin with some texts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KindMatch {
    /// The kinds.
    pub kinds: Vec<Name>,
    /// The beginnings of kinds. An empty one is that of every kind. Kinds that are
    /// [reserved](Name::is_reserved) match none.
    pub prefixes: Vec<String>,
}

impl KindSelection {
    /// These kinds, and all whose name begins with one of these texts.
    #[must_use]
    pub fn matching(kinds: Vec<Name>, prefixes: Vec<String>) -> Self {
        Self::Matching(Box::new(KindMatch { kinds, prefixes }))
    }

    /// Whether it takes tasks of a kind.
    #[must_use]
    pub fn selects(&self, kind: &Name) -> bool {
        match self {
            Self::All => !kind.is_reserved(),
            Self::Only(kinds) => kinds.contains(kind),
            Self::Matching(matching) => {
                let matches = |prefix: &String| kind.starts_with(prefix.as_str()) && !kind.is_reserved();
                matching.kinds.contains(kind) || matching.prefixes.iter().any(matches)
            }
        }
    }
}

/// What becomes of a task after a failed attempt. The caller decides;
/// [`rules::retry`](crate::rules::retry) has the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// It is tried again.
    Retry {
        /// After this long; zero for at once.
        after: Duration,
        /// Whether this attempt counts.
        uses_attempt: bool,
        /// Whether the session keeps the task and starts the next attempt itself. Needs `after` to
        /// be zero; the outcome has the new lease. A task that falls under a [rate](crate::Rate) is
        /// not kept: it waits for its turn.
        hold: bool,
    },
    /// It goes to the dead letters.
    Dead,
    /// It has failed for good.
    Fail,
}

/// What a pause names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", tag = "scope", content = "name")]
pub enum Scope {
    /// Everything.
    All,
    /// One queue.
    Queue(Name),
    /// One kind.
    Kind(Name),
    /// One group.
    Group(Name),
}

/// Which ended tasks to forget, beside those whose own [retention](crate::NewTask::retention) is
/// over: of the others, for a task's own value is what holds of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prune {
    /// Those that ended longer ago than this.
    pub older_than: Option<Duration>,
    /// The oldest, so that this many remain.
    pub keep: Option<u64>,
    /// At most this many in this write.
    pub limit: usize,
}
