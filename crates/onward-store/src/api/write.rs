//! Writes: the changes of state that a store applies.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::api::bulk::Bulk;
use crate::api::completion::{CompletionToken, CompletionWait, ExternalCompletion};
use crate::api::dependency::OnDependencyFailure;
use crate::api::document::{ExpectedVersion, PutDocument};
use crate::api::io::Io;
use crate::api::limit::SetLimit;
use crate::api::name::Name;
use crate::api::orchestration::{EndWithTurn, Signal, Turn};
use crate::api::output::OutputPiece;
use crate::api::queue::{QueueChoice, QueueMode, SetQueue};
use crate::api::schedule::{FireSchedule, NextFiring, SetSchedule};
use crate::api::served::Served;
use crate::api::task::{ByteProgress, Lease, NewTask, Priority, SessionId, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::rules::order::{SortKey, last_sort_key};

/// One change of state, as a value.
///
/// Each write is atomic and returns its own [`Outcome`](crate::Outcome). The writes of one
/// [`apply`](crate::Store::apply) act in list order and become durable together. A store rejects a
/// write whose requirements are not met: it returns [`Outcome::Refused`](crate::Outcome::Refused),
/// and the write changes nothing and does not affect other writes. Every write sees the effects of
/// those before it. The write of a concurrent caller acts wholly before or wholly after it.
///
/// Its form in JSON is that between a program and a server of the same version. Writes of workers
/// have none, because a worker needs the store itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Write {
    /// Opens a session for a worker.
    ///
    /// Requires a lease of 100 ms to 24 h, and at most
    /// [`bounds::SERVED_NAMES`](crate::bounds::SERVED_NAMES) names in
    /// [`serves`](OpenSession::serves). Returns [`SessionOpened`](crate::Outcome::SessionOpened)
    /// with a number that was never used before.
    ///
    /// A session without tasks need not be renewed. The store forgets it when its lease has been
    /// over for [a day](crate::bounds::SESSION_KEPT). Its worker must then open another.
    #[serde(skip)]
    OpenSession(OpenSession),

    /// Extends the lease of a session to its full length from now. Leaves the lease unchanged if at
    /// most a tenth of it has passed.
    ///
    /// Requires an open session (else [`SessionLost`](crate::Refusal::SessionLost)). Returns
    /// [`Renewed`](crate::Outcome::Renewed) with the tasks of the session that are to be cancelled.
    #[serde(skip)]
    RenewSession {
        /// The session.
        session: SessionId,
    },

    /// Closes a session. Its tasks wait again, as after [`Release`](Self::Release).
    ///
    /// Returns [`Done`](crate::Outcome::Done), also if the session is already gone.
    #[serde(skip)]
    CloseSession {
        /// The session.
        session: SessionId,
    },

    /// Submits a task. Once the write is durable, a concurrent claim may take the task.
    ///
    /// Requires valid input ([`NewTask::check`]), a known parent (else
    /// [`TaskNotFound`](crate::Refusal::TaskNotFound)), known dependencies (else
    /// [`DependencyNotFound`](crate::Refusal::DependencyNotFound)), room for a new queue, kind or
    /// group, and for [`TakeOver`](crate::OnDuplicate::TakeOver) a key that can be taken over (else
    /// [`KeyTaken`](crate::Refusal::KeyTaken)). Returns [`Submitted`](crate::Outcome::Submitted),
    /// which states whether the task was inserted or what its key caused instead.
    Submit(Box<NewTask>),

    /// Claims due tasks for a session: in a queue the most urgent first, then the oldest; among
    /// queues by the [mode](QueueMode). The write first renews the session and does what
    /// [`Sweep`](Self::Sweep) does.
    ///
    /// Requires an open session (else [`SessionLost`](crate::Refusal::SessionLost)). Returns
    /// [`Claimed`](crate::Outcome::Claimed).
    ///
    /// Two claims never return the same task. Together, claims never make more tasks of a queue run
    /// than its [concurrency](crate::QueueSettings::concurrency) allows, nor more of any scope than
    /// its [limit](crate::Limit).
    #[serde(skip)]
    Claim(Claim),

    /// Ends an attempt successfully and completes its task. A task whose cancellation was requested
    /// completes, too.
    ///
    /// Requires a current lease (else [`LeaseLost`](crate::Refusal::LeaseLost) or
    /// [`SessionLost`](crate::Refusal::SessionLost)) and a result within the payload limit. Returns
    /// [`Done`](crate::Outcome::Done).
    #[serde(skip)]
    Complete {
        /// The lease of the attempt.
        lease: Lease,
        /// The result of the handler; at most as large as a payload.
        result: Option<Bytes>,
    },

    /// Ends an attempt with an error. A task whose cancellation was requested is cancelled instead
    /// of being retried.
    ///
    /// Requires a current lease. Returns [`Failed`](crate::Outcome::Failed) with the new state of
    /// the task.
    #[serde(skip)]
    Fail {
        /// The lease of the attempt.
        lease: Lease,
        /// The error message; cut at 8 KiB.
        error: String,
        /// The effect on the task.
        next: AfterFailure,
    },

    /// Gives a claimed task up as if it had not been claimed, whether or not its handler has
    /// started. The release uses no attempt. The task expires when it would have expired before the
    /// claim, which may be at once. A task whose cancellation was requested is cancelled.
    ///
    /// Requires a current lease. Returns [`Done`](crate::Outcome::Done).
    #[serde(skip)]
    Release {
        /// The lease of the attempt.
        lease: Lease,
        /// The delay until the task is due again; zero for at once.
        after: Duration,
    },

    /// Ends an attempt and blocks the task until all its children have ended, including children
    /// that are submitted while it waits. The task then waits for another attempt, whose claim
    /// returns `checkpoint`. The write uses no attempt, and the time to live is unchanged. A task
    /// whose cancellation was requested is cancelled.
    ///
    /// Requires a current lease, a task that is no orchestration, a checkpoint within the payload
    /// limit, at most [`bounds::AWAITED_CHILDREN`](crate::bounds::AWAITED_CHILDREN) live children,
    /// and that none of these waits for this task. Returns
    /// [`AwaitsChildren`](crate::Outcome::AwaitsChildren).
    #[serde(skip)]
    AwaitChildren {
        /// The lease of the attempt.
        lease: Lease,
        /// The checkpoint for the next attempt.
        checkpoint: Bytes,
        /// The effect if a child that is live, or was submitted in this attempt, ends in a state
        /// other than completed. The task is cancelled or fails at once, and its other children are
        /// cancelled; or it continues to wait.
        on_failure: OnDependencyFailure,
    },

    /// Ends an attempt, and its task, as cancelled. A worker confirms a request to cancel with it.
    ///
    /// Requires a current lease. Returns [`Done`](crate::Outcome::Done).
    #[serde(skip)]
    ConfirmCancel {
        /// The lease of the attempt.
        lease: Lease,
        /// The reason, which becomes the last error of the task; cut at 8 KiB.
        reason: String,
    },

    /// Stores the progress of a running task for readers. A later report replaces an earlier one.
    /// The last one stays on the ended task.
    ///
    /// Requires a current lease. Returns [`Done`](crate::Outcome::Done).
    #[serde(skip)]
    Report {
        /// The lease of the attempt.
        lease: Lease,
        /// The fraction done, clamped to 0.0 to 1.0; `None` if it is unknown or not a number.
        fraction: Option<f32>,
        /// A description of the current step; cut at 1024 bytes.
        message: Option<String>,
        /// The bytes done and the total, if the handler counts bytes.
        bytes: Option<ByteProgress>,
    },

    /// Stores a checkpoint of a running task. The claim of the next attempt returns it as
    /// [`checkpoint`](crate::ClaimedTask::checkpoint). A later checkpoint replaces an earlier one,
    /// including that of [`AwaitChildren`](Self::AwaitChildren). It is discarded when the task
    /// ends.
    ///
    /// Requires a current lease, a checkpoint within the payload limit, and a task that is no
    /// orchestration. Orchestrations have a history instead. Returns
    /// [`Done`](crate::Outcome::Done).
    #[serde(skip)]
    SaveCheckpoint {
        /// The lease of the attempt.
        lease: Lease,
        /// The checkpoint for the next attempt.
        checkpoint: Bytes,
    },

    /// Stores the bytes that a running task has moved so far. A later record replaces an earlier
    /// one, including that of an earlier attempt. The last one stays on the ended task.
    ///
    /// Requires a current lease. Returns [`Done`](crate::Outcome::Done).
    #[serde(skip)]
    RecordIo {
        /// The lease of the attempt.
        lease: Lease,
        /// The bytes that this attempt has moved.
        io: Io,
    },

    /// Appends output of a running task for readers. The output of a new attempt replaces that of
    /// the attempt before, both streams at once. Of a long stream the store keeps the beginning and
    /// the end, together [`bounds::OUTPUT_BYTES`](crate::bounds::OUTPUT_BYTES); it drops whole
    /// pieces between them. Output stays on the ended task.
    ///
    /// Requires a current lease, 1 to
    /// [`bounds::OUTPUT_APPEND_BYTES`](crate::bounds::OUTPUT_APPEND_BYTES) bytes, and an offset
    /// that is not before the end of what the attempt appended to the stream. Bytes between that
    /// end and the offset count as cut. A piece that was appended already is accepted and changes
    /// nothing. Returns [`Done`](crate::Outcome::Done).
    ///
    /// A piece [of the result](OutputPiece::of_result) replaces all of its stream. Write it in one
    /// [`All`](Self::All) with the [`Complete`](Self::Complete) that has the result. Readers
    /// receive the result in its place, and nothing where the task has none, as after a retry.
    #[serde(skip)]
    AppendOutput {
        /// The lease of the attempt.
        lease: Lease,
        /// The output.
        piece: OutputPiece,
    },

    /// Cancels a task that does not run, or asks the worker of a running task to stop it. An
    /// orchestration that has begun receives a [message](crate::MessageBody::Cancel), and its code
    /// decides how it ends.
    ///
    /// Requires a known task (else [`TaskNotFound`](crate::Refusal::TaskNotFound)) that has not
    /// ended (else [`AlreadyEnded`](crate::Refusal::AlreadyEnded)). Returns
    /// [`Cancelled`](crate::Outcome::Cancelled) or
    /// [`CancelRequested`](crate::Outcome::CancelRequested).
    Cancel {
        /// The task.
        task: TaskId,
    },

    /// Makes an ended task wait again under its old number. Its attempts count from zero and its
    /// time to live starts again. Its errors are kept; its result, progress and checkpoint are
    /// discarded. The ended items of a batch wait again with it.
    ///
    /// Requires a task that has ended (else [`NotEnded`](crate::Refusal::NotEnded)), a key that no
    /// active task has (else [`KeyTaken`](crate::Refusal::KeyTaken)), and a deadline in the future,
    /// if the task has one. The task must not be a step of an active workflow run (else
    /// [`StepOfRun`](crate::Refusal::StepOfRun)). A batch must have items left. Returns
    /// [`Done`](crate::Outcome::Done).
    Retry {
        /// The task.
        task: TaskId,
    },

    /// Makes a scheduled task due now, whether it waited for its time or between two attempts. Its
    /// position in the queue is that of a task that became due now. A task that is already due is
    /// unchanged.
    ///
    /// Requires a task that is scheduled or waiting (else [`Running`](crate::Refusal::Running),
    /// [`Blocked`](crate::Refusal::Blocked) or [`AlreadyEnded`](crate::Refusal::AlreadyEnded)).
    /// Returns [`Done`](crate::Outcome::Done).
    RunNow {
        /// The task.
        task: TaskId,
    },

    /// Ends a task that does not run as a dead letter, with an error that states this. An operator
    /// sees it among the dead letters and can retry it.
    ///
    /// Requires a task that waits, is scheduled or is blocked (else
    /// [`Running`](crate::Refusal::Running) or [`AlreadyEnded`](crate::Refusal::AlreadyEnded)).
    /// Returns [`Done`](crate::Outcome::Done).
    Kill {
        /// The task.
        task: TaskId,
    },

    /// Removes a task and its record, as [`Purge`](Self::Purge) does.
    ///
    /// Requires a task that does not run (else [`Running`](crate::Refusal::Running)). Returns
    /// [`Done`](crate::Outcome::Done).
    Delete {
        /// The task.
        task: TaskId,
    },

    /// Stops claims of the tasks of a scope until it is resumed, or until a set time. Running tasks
    /// continue. A second pause of the scope replaces the time. Pauses of different scopes combine.
    ///
    /// Requires room for a queue or kind that does not exist yet; the write creates it. Returns
    /// [`Done`](crate::Outcome::Done).
    Pause {
        /// The scope to pause.
        scope: Scope,
        /// The time at which the pause ends by itself; `None` pauses until
        /// [`Resume`](Self::Resume).
        until: Option<Timestamp>,
    },

    /// Ends a pause. Returns [`Done`](crate::Outcome::Done), also if the scope was not paused.
    Resume {
        /// The scope that was paused.
        scope: Scope,
    },

    /// Changes the settings of a queue: its weight, its concurrency, and the time for which its
    /// tasks wait for the session that their affinity key prefers. Creates the queue if it does not
    /// exist. Running tasks continue, even beyond a new limit.
    ///
    /// Requires values within their ranges. Returns [`QueueSet`](crate::Outcome::QueueSet) with the
    /// settings after the change.
    SetQueue(SetQueue),

    /// Sets the mode by which claims choose among queues, unless a claim states its own. Returns
    /// [`Done`](crate::Outcome::Done).
    SetQueueMode(QueueMode),

    /// Changes the limit of a scope: how many of its tasks run at once, how fast they start, and
    /// for groups their share. Creates a queue or kind that does not exist. Running tasks continue,
    /// even beyond a new limit. The concurrency of a queue is the one that
    /// [`SetQueue`](Self::SetQueue) sets.
    ///
    /// Requires values within their ranges. Returns [`LimitSet`](crate::Outcome::LimitSet) with the
    /// limit after the change. An empty limit is removed; a limit on the prefix of a group's name
    /// then applies to that group.
    SetLimit(SetLimit),

    /// Removes tasks of a queue and their records, oldest first. Tasks that depend on a removed
    /// live task are updated as if it had not completed.
    ///
    /// Requires a known queue (else [`QueueNotFound`](crate::Refusal::QueueNotFound)) and at least
    /// one state, but not running (else [`Invalid`](crate::Refusal::Invalid)). Returns
    /// [`Removed`](crate::Outcome::Removed), which states whether more tasks match.
    Purge {
        /// The queue.
        queue: Name,
        /// The states of the tasks to remove. [`TaskState::Running`] is rejected.
        states: Vec<TaskState>,
        /// The largest number of tasks to remove.
        limit: usize,
    },

    /// Deletes a queue with its pause, weight and limit. Its ended tasks stay. A later submit
    /// creates the queue again.
    ///
    /// Requires a known queue (else [`QueueNotFound`](crate::Refusal::QueueNotFound)) without live
    /// tasks (else [`QueueInUse`](crate::Refusal::QueueInUse)). Returns
    /// [`Done`](crate::Outcome::Done).
    DeleteQueue {
        /// The queue.
        queue: Name,
    },

    /// Removes ended tasks from history.
    ///
    /// Tasks whose own [retention](crate::NewTask::retention) is over are removed first. Of the
    /// tasks without a retention, those that ended longer ago than `older_than` and the oldest
    /// beyond `keep` are removed, in the order of their ends.
    ///
    /// Events are forgotten up to the last end that the write removed, in whole calls of
    /// [`apply`](crate::Store::apply). Events from the first end of a remaining task without a
    /// retention onwards are kept.
    ///
    /// Returns [`Removed`](crate::Outcome::Removed), which states whether more tasks match.
    Prune(Prune),

    /// Creates a schedule, or changes the one with the same name. A paused schedule stays paused. A
    /// schedule that is already as requested is unchanged.
    ///
    /// Requires valid input, room for another schedule, and an existing schedule from the same
    /// provider. Returns [`ScheduleSet`](crate::Outcome::ScheduleSet).
    SetSchedule(Box<SetSchedule>),

    /// Deletes a schedule and its held firing. Tasks that it submitted stay.
    ///
    /// Requires a known schedule (else [`ScheduleNotFound`](crate::Refusal::ScheduleNotFound)).
    /// Returns [`Done`](crate::Outcome::Done).
    DeleteSchedule {
        /// The schedule.
        schedule: Name,
    },

    /// Pauses a schedule: it does not fire until it is resumed.
    ///
    /// Requires a known schedule (else [`ScheduleNotFound`](crate::Refusal::ScheduleNotFound)).
    /// Returns [`Done`](crate::Outcome::Done), also if the schedule is already paused.
    PauseSchedule {
        /// The schedule.
        schedule: Name,
    },

    /// Resumes a paused schedule. A schedule that is not paused is unchanged.
    ///
    /// Requires a known schedule (else [`ScheduleNotFound`](crate::Refusal::ScheduleNotFound)) with
    /// this revision (else [`ScheduleChanged`](crate::Refusal::ScheduleChanged)). Returns
    /// [`Done`](crate::Outcome::Done).
    ResumeSchedule {
        /// The schedule.
        schedule: Name,
        /// The revision of the schedule from which the caller computed `next`.
        revision: u64,
        /// The next firing; `None` if the schedule is over.
        next: Option<NextFiring>,
    },

    /// Submits the tasks of a schedule's firings, as the overlap policy requires, and sets the next
    /// firing. It does so whether or not the schedule is paused.
    ///
    /// Requires a known schedule with this revision (else
    /// [`ScheduleChanged`](crate::Refusal::ScheduleChanged)), so of several callers that fire a
    /// schedule at once, one succeeds. Returns [`ScheduleFired`](crate::Outcome::ScheduleFired). If
    /// a task cannot be submitted, the write is not rejected: the schedule stores the error and
    /// continues.
    FireSchedule(Box<FireSchedule>),

    /// Applies the changes that time alone causes.
    ///
    /// A sweep ends pauses, makes due tasks wait, and expires tasks. It takes tasks back from
    /// lapsed sessions, fails overdue external completions, and delivers ready batches. It also
    /// forgets the preferred sessions of long unused [affinity keys](crate::NewTask::affinity), and
    /// [idle sessions](crate::bounds::SESSION_KEPT) whose lease is long over.
    ///
    /// One sweep handles at most 1024 of each; the rest is due at once, or in the next sweep.
    /// Returns [`Swept`](crate::Outcome::Swept).
    Sweep,

    /// Applies one [verb](crate::BulkVerb) to the tasks that a filter selects, newest first, one
    /// chunk at a time.
    ///
    /// A chunk examines at most 16 384 task numbers, so it may change nothing although more chunks
    /// follow. Tasks that are submitted after the first chunk are not changed. Returns
    /// [`Bulk`](crate::Outcome::Bulk), which states where the next chunk begins.
    Bulk(Box<Bulk>),

    /// Ends an attempt without a result and blocks its task until the attempt is completed
    /// externally by [`CompleteExternally`](Self::CompleteExternally). The blocked task holds no
    /// session and no limit, and its time to live does not run. If the attempt is not completed in
    /// time, it has failed and its retry policy decides what follows. A task whose cancellation was
    /// requested is cancelled.
    ///
    /// Requires a current lease, a valid policy, and a task that is no orchestration. Returns
    /// [`AwaitsCompletion`](crate::Outcome::AwaitsCompletion).
    #[serde(skip)]
    AwaitCompletion {
        /// The lease of the attempt.
        lease: Lease,
        /// The time limit, and the retry policy for a failure.
        wait: CompletionWait,
    },

    /// Completes externally an attempt that [waits](Self::AwaitCompletion) for it, or extends its
    /// time. A token with a claim number can also complete an attempt that still runs.
    ///
    /// Requires a known task (else [`TaskNotFound`](crate::Refusal::TaskNotFound)) that has not
    /// ended (else [`AlreadyEnded`](crate::Refusal::AlreadyEnded)), an attempt that waits (else
    /// [`NotAwaited`](crate::Refusal::NotAwaited)), the claim number of that attempt (else
    /// [`TokenOutdated`](crate::Refusal::TokenOutdated)), and a result within the payload limit.
    /// Returns [`CompletedExternally`](crate::Outcome::CompletedExternally).
    CompleteExternally {
        /// The attempt.
        token: CompletionToken,
        /// The report about the attempt.
        completion: ExternalCompletion,
    },

    /// Moves a task to another queue, and creates the queue if it does not exist.
    ///
    /// A task that does not run moves at once and keeps its position. A running attempt continues
    /// and counts in its old queue, and so does an end of the task with it. If the task waits again
    /// after the attempt, it does so in the new queue, and its session does not keep it. A second
    /// request replaces the queue. A request for the current queue withdraws the move.
    ///
    /// Requires a task that has not ended (else [`AlreadyEnded`](crate::Refusal::AlreadyEnded)).
    /// Returns [`Moved`](crate::Outcome::Moved) or
    /// [`MoveRequested`](crate::Outcome::MoveRequested).
    Move {
        /// The task.
        task: TaskId,
        /// The new queue.
        queue: Name,
    },

    /// Announces that a session starts no more tasks. No [affinity key](crate::NewTask::affinity)
    /// prefers the session any longer, so tasks reserved for it become available to other sessions
    /// at once. Its running tasks continue. The store still accepts claims of the session.
    ///
    /// Requires an open session (else [`SessionLost`](crate::Refusal::SessionLost)). Returns
    /// [`Done`](crate::Outcome::Done).
    #[serde(skip)]
    Retire {
        /// The session.
        session: SessionId,
    },

    /// Writes a turn of an orchestration. A turn appends to the history, discards the messages that
    /// it consumed, submits and cancels tasks, changes tags, and sets how the orchestration
    /// continues. It uses no attempt.
    ///
    /// The end of a task that was submitted with a [report](NewTask::report) arrives later as a
    /// message. So does the information that the task was not inserted.
    ///
    /// Requires:
    ///
    /// * a current lease;
    /// * an orchestration (else [`NotAnOrchestration`](crate::Refusal::NotAnOrchestration));
    /// * the history length that the turn states (else
    ///   [`HistoryMoved`](crate::Refusal::HistoryMoved));
    /// * input within the bounds;
    /// * if the turn ends the orchestration as completed, failed or cancelled: that all messages
    ///   were consumed (else [`Unread`](crate::Refusal::Unread)), or that the turn [leaves them
    ///   unread](crate::Turn::leaves_unread).
    ///
    /// Returns [`Turned`](crate::Outcome::Turned).
    #[serde(skip)]
    Turn(Box<Turn>),

    /// Ends an attempt of a task that an orchestration submitted with a [report](NewTask::report),
    /// and writes the turn to which the report leads.
    ///
    /// The end has the requirements of the write of the same name, and its refusal is the refusal
    /// of this write. The turn is written if the task ends in the
    /// [state](crate::AttemptEnd::state) that the end asks for, and
    ///
    /// * the orchestration was parked, and neither its [time](crate::AfterTurn::Park::until) had
    ///   come nor was it [paused](Self::PauseOrchestration);
    /// * its generation, its history length and its number of received messages were those that
    ///   the write states, and the report is the only message since;
    /// * the session of the attempt could claim the orchestration: no pause and no limit holds it
    ///   back, it has not expired, and it is not reserved for another session;
    /// * [`Turn`](Self::Turn) would accept the turn.
    ///
    /// It is then written as if the session of the attempt had claimed the orchestration for it.
    /// Otherwise only the attempt ends, and the report waits for the next turn.
    ///
    /// Returns [`Ended`](crate::Outcome::Ended), which states whether the turn was written. Several
    /// such writes of one [`apply`](crate::Store::apply) can be planned on each other: if one turn
    /// is not written, neither are the later ones.
    #[serde(skip)]
    EndWithTurn(Box<EndWithTurn>),

    /// Sends a signal to an orchestration for its next turn. A parked orchestration waits for a
    /// claim again.
    ///
    /// Requires an orchestration (else [`NotAnOrchestration`](crate::Refusal::NotAnOrchestration))
    /// that has not ended (else [`AlreadyEnded`](crate::Refusal::AlreadyEnded)). A key must be that
    /// of an active orchestration (else [`NoneWithKey`](crate::Refusal::NoneWithKey)). The payload
    /// must be within the limit, and fewer than [`bounds::MAILBOX`](crate::bounds::MAILBOX)
    /// messages may wait (else [`MailboxFull`](crate::Refusal::MailboxFull)). Returns
    /// [`Done`](crate::Outcome::Done).
    ///
    /// A signal with [`KeyOrStart`](crate::Recipient::KeyOrStart) is kept if no orchestration has
    /// the key. The store then creates an orchestration that is [not
    /// started](crate::Hold::Unstarted), in the queue
    /// [`bounds::UNSTARTED_QUEUE`](crate::bounds::UNSTARTED_QUEUE). It holds the key and the
    /// messages, and passes both to the first orchestration that is submitted with the key. It
    /// expires at the latest time that one of its signals set, and can be listed, cancelled and
    /// deleted like any task. It accepts
    /// [`bounds::UNSTARTED_EVENTS`](crate::bounds::UNSTARTED_EVENTS) messages. A store holds at
    /// most [`bounds::UNSTARTED_KEYS`](crate::bounds::UNSTARTED_KEYS) of them.
    Signal(Box<Signal>),

    /// Ends an orchestration as cancelled, at once and without running its code. Its lease becomes
    /// invalid, and its children are cancelled.
    ///
    /// Requires an orchestration (else [`NotAnOrchestration`](crate::Refusal::NotAnOrchestration))
    /// that is no run of a workflow (else [`RunOfWorkflow`](crate::Refusal::RunOfWorkflow)) and has
    /// not ended (else [`AlreadyEnded`](crate::Refusal::AlreadyEnded)). Returns
    /// [`Cancelled`](crate::Outcome::Cancelled).
    Terminate {
        /// The orchestration.
        task: TaskId,
        /// The reason, which becomes the last error; cut at 8 KiB.
        reason: String,
    },

    /// Pauses an orchestration. It stays blocked until it is [resumed](Self::ResumeOrchestration).
    /// Messages are kept, including a request to cancel. A running turn is finished and written.
    /// The tasks for which the orchestration waits continue.
    ///
    /// Requires an orchestration (else [`NotAnOrchestration`](crate::Refusal::NotAnOrchestration))
    /// that has not ended (else [`AlreadyEnded`](crate::Refusal::AlreadyEnded)). Returns
    /// [`Done`](crate::Outcome::Done), also if it is already paused.
    PauseOrchestration {
        /// The orchestration.
        task: TaskId,
    },

    /// Resumes a paused orchestration. Messages and timers that became due during the pause give it
    /// a turn.
    ///
    /// Requires an orchestration (else [`NotAnOrchestration`](crate::Refusal::NotAnOrchestration))
    /// that has not ended (else [`AlreadyEnded`](crate::Refusal::AlreadyEnded)). Returns
    /// [`Done`](crate::Outcome::Done), also if it is not paused.
    ResumeOrchestration {
        /// The orchestration.
        task: TaskId,
    },

    /// Stores a document: creates it, or replaces its content, content type and index. A document
    /// that has these already is unchanged and keeps its version.
    ///
    /// Requires input within the bounds ([`rules::document`](crate::rules::document)), the expected
    /// version (else [`DocumentChanged`](crate::Refusal::DocumentChanged)), and room for a new
    /// document and a new collection. Returns [`DocumentPut`](crate::Outcome::DocumentPut) with the
    /// version.
    PutDocument(Box<PutDocument>),

    /// Deletes a document.
    ///
    /// Requires the expected version (else [`DocumentChanged`](crate::Refusal::DocumentChanged)).
    /// Returns [`DocumentDeleted`](crate::Outcome::DocumentDeleted), also if there is no document
    /// and the write does not expect one.
    DeleteDocument {
        /// The collection.
        collection: Name,
        /// The key.
        key: String,
        /// The version that the document must have.
        expect: ExpectedVersion,
    },

    /// Applies several writes in order, all or none. At most 100 000 writes, none of which may be
    /// an `All`.
    ///
    /// If a write is rejected, none of them has an effect and the outcome is
    /// [`Refusal::InAll`](crate::Refusal::InAll). Returns [`All`](crate::Outcome::All).
    All(Vec<Write>),
}

/// The registration of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// A name for people, such as host and process id; cut at 128 bytes.
    pub name: String,
    /// The length of the lease, 100 ms to 24 h: the time for which claims stay valid without a
    /// renewal.
    pub lease: Duration,
    /// The queues, kinds and code that the worker serves, for diagnostics:
    /// [`StoreReads::why`](crate::StoreReads::why) reports tasks that no worker serves. Claims are
    /// not restricted by it.
    pub serves: Served,
}

impl OpenSession {
    /// Creates the registration of a worker that serves everything.
    #[must_use]
    pub fn new(name: impl Into<String>, lease: Duration) -> Self {
        Self { name: name.into(), lease, serves: Served::default() }
    }
}

/// A worker's request for tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The session that receives the tasks.
    pub session: SessionId,
    /// The queues from which tasks are taken.
    pub queues: QueueSelection,
    /// The kinds of which tasks are taken.
    pub kinds: KindSelection,
    /// True if orchestrations of these kinds are taken, too. An engine whose handlers serve all
    /// kinds excludes them, and claims by name those whose code it has.
    pub orchestrations: bool,
    /// The largest number of tasks in all; the store returns at most 4096
    /// ([`bounds::CLAIM`](crate::bounds::CLAIM)).
    pub limit: usize,
    /// The choice among queues.
    pub choice: QueueChoice,
    /// The lowest priority that is taken; `None` for any. A task counts as its own priority plus
    /// one level for each minute ([`bounds::PRIORITY_LEVEL`](crate::bounds::PRIORITY_LEVEL)) that
    /// it has been due. Tasks below this priority add no cost.
    pub least: Option<Priority>,
}

impl Claim {
    /// Creates a claim of tasks of every kind from every queue, in the mode of the store.
    #[must_use]
    pub fn any(session: SessionId, limit: usize) -> Self {
        let (queues, kinds) = (QueueSelection::All, KindSelection::All);
        Self { session, queues, kinds, orchestrations: true, limit, choice: QueueChoice::default(), least: None }
    }

    /// Returns the last sort key that the claim takes; `None` if it takes any.
    pub(crate) fn last_sort_key(&self, now: Timestamp) -> Option<SortKey> {
        self.least.map(|least| last_sort_key(least, now))
    }

    /// Returns whether the claim takes tasks of a queue and a kind. `is_orchestration` states
    /// whether the tasks are orchestrations.
    #[must_use]
    pub fn selects(&self, queue: &Name, kind: &Name, is_orchestration: bool) -> bool {
        let queue_is_selected = match &self.queues {
            QueueSelection::All => true,
            QueueSelection::Only(queues) => queues.iter().any(|(name, limit)| name == queue && *limit > 0),
        };
        queue_is_selected && self.selects_kind(kind, is_orchestration)
    }

    /// Returns whether the claim takes tasks of a kind from some queue.
    pub(crate) fn selects_kind(&self, kind: &Name, is_orchestration: bool) -> bool {
        (self.orchestrations || !is_orchestration) && self.kinds.selects(kind)
    }
}

/// The queues from which a claim takes tasks.
/// ```
/// use onward_store::{Claim, Name, QueueSelection, SessionId};
///
/// let (mails, reports): (Name, Name) = ("mails".parse()?, "reports".parse()?);
/// let mut claim = Claim::any(SessionId(1), 10);
/// claim.queues = QueueSelection::Only(vec![(mails.clone(), 8), (reports, 2)]);
/// assert!(claim.selects(&mails, &"send".parse()?, false));
/// assert!(!claim.selects(&"invoices".parse()?, &"send".parse()?, false));
/// # Ok::<(), onward_store::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSelection {
    /// All queues of the store.
    #[default]
    All,
    /// These queues, with the largest number of tasks from each. The numbers of a queue that is
    /// named twice are added.
    Only(Vec<(Name, usize)>),
}

/// The kinds of which a claim takes tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KindSelection {
    /// All kinds that are not [reserved](Name::is_reserved).
    #[default]
    All,
    /// These kinds.
    Only(Vec<Name>),
    /// These kinds, and kinds whose names have one of these prefixes. The value is boxed to keep
    /// [`Write`] small.
    Matching(Box<KindMatch>),
}

/// Kinds by name and by prefix.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KindMatch {
    /// The names of kinds.
    pub kinds: Vec<Name>,
    /// The prefixes of names of kinds. An empty prefix matches every kind. No prefix matches a
    /// [reserved](Name::is_reserved) kind.
    pub prefixes: Vec<String>,
}

impl KindSelection {
    /// Selects kinds by name and by prefix.
    #[must_use]
    pub fn matching(kinds: Vec<Name>, prefixes: Vec<String>) -> Self {
        Self::Matching(Box::new(KindMatch { kinds, prefixes }))
    }

    /// Returns whether the selection contains a kind.
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

/// The effect of a failed attempt on its task. The caller decides it;
/// [`rules::retry`](crate::rules::retry) contains the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// The task is retried.
    Retry {
        /// The delay until the next attempt; zero for at once.
        after: Duration,
        /// True if this attempt counts as used.
        uses_attempt: bool,
        /// True if the session keeps the task and starts the next attempt itself. Requires `after`
        /// to be zero; the outcome contains the new lease. A task that is under a
        /// [rate](crate::Rate), has expired, or is to move to another queue is not kept and waits
        /// again.
        hold: bool,
    },
    /// The task becomes a dead letter.
    Dead,
    /// The task fails and is not retried.
    Fail,
}

/// The scope of a pause.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", tag = "scope", content = "name")]
pub enum Scope {
    /// All tasks of the store.
    All,
    /// The tasks of a queue.
    Queue(Name),
    /// The tasks of a kind.
    Kind(Name),
    /// The tasks of a group.
    Group(Name),
}

/// The ended tasks that a prune removes from history.
///
/// Tasks whose own [retention](crate::NewTask::retention) is over are always included. The other
/// conditions apply to tasks without a retention; either one is enough.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Prune {
    /// Removes tasks that ended longer ago than this; `None` for no such limit.
    pub older_than: Option<Duration>,
    /// Removes the oldest tasks so that this many remain; `None` for no such limit.
    pub keep: Option<u64>,
    /// The largest number of tasks that one write removes.
    pub limit: usize,
}
