//! The steps of a sequence.

use std::time::Duration;

use bytes::Bytes;
use onward_store::{
    AfterFailure, AttemptEnd, BulkVerb, ByteProgress, CompletionWait, ExternalCompletion, FireSchedule, Io,
    KindSelection, Name, NewTask, NextFiring, OnDependencyFailure, OutputStream, Priority, Prune, QueueMode,
    QueueSelection, Scope, Served, SetLimit, SetQueue, SetSchedule, TaskFilter, TaskState, Write,
};

/// One step of a sequence.
#[derive(Debug, Clone)]
pub enum Step {
    /// Applies writes in one call.
    Apply(Vec<Operation>),
    /// Moves the clock forward.
    Advance(Duration),
    /// Sets wall time back. Steady time stands still.
    SetBack(Duration),
    /// Closes the store and opens it again.
    Reopen,
}

/// A write that names sessions, leases and tasks by [`Pick`]s among those known when it is run.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is the write of the same name")]
pub enum Operation {
    OpenSession {
        lease: Duration,
        serves: Served,
    },
    RenewSession(Pick),
    CloseSession(Pick),
    Retire(Pick),
    Submit(Box<NewTask>),
    Claim {
        session: Pick,
        queues: QueueSelection,
        kinds: KindSelection,
        orchestrations: bool,
        limit: usize,
        mode: Option<QueueMode>,
        random: u64,
        least: Option<Priority>,
    },
    Complete {
        lease: Pick,
        result: Option<Bytes>,
    },
    Fail {
        lease: Pick,
        next: AfterFailure,
    },
    Release {
        lease: Pick,
        after: Duration,
    },
    AwaitChildren {
        lease: Pick,
        checkpoint: Bytes,
        on_failure: OnDependencyFailure,
    },
    ConfirmCancel(Pick),
    AwaitCompletion {
        lease: Pick,
        wait: CompletionWait,
    },
    CompleteExternally {
        lease: Pick,
        by_number: bool,
        completion: ExternalCompletion,
    },
    Move {
        task: Pick,
        queue: Name,
    },
    Report {
        lease: Pick,
        fraction: Option<f32>,
        bytes: Option<ByteProgress>,
    },
    SaveCheckpoint(Pick),
    RecordIo {
        lease: Pick,
        io: Io,
    },
    AppendOutput {
        lease: Pick,
        stream: OutputStream,
        /// The offset, in units of 3 bytes.
        at: u64,
        units: usize,
    },
    /// Appends a piece that stands for the result.
    OutputIsResult {
        lease: Pick,
        stream: OutputStream,
        length: u32,
    },
    Cancel(Pick),
    Retry(Pick),
    RunNow(Pick),
    Kill(Pick),
    Delete(Pick),
    Pause {
        scope: Scope,
        for_: Option<Duration>,
    },
    Resume(Scope),
    SetQueue(SetQueue),
    SetLimit(SetLimit),
    SetQueueMode(QueueMode),
    SetSchedule(Box<SetSchedule>),
    DeleteSchedule(Name),
    PauseSchedule(Name),
    ResumeSchedule {
        schedule: Name,
        revision: Pick,
        next: Option<NextFiring>,
    },
    FireSchedule {
        fire: Box<FireSchedule>,
        revision: Pick,
    },
    Purge {
        queue: Name,
        states: Vec<TaskState>,
        limit: usize,
    },
    DeleteQueue(Name),
    Prune(Prune),
    Bulk {
        verb: BulkVerb,
        filter: Box<TaskFilter>,
        before: Option<Pick>,
        limit: usize,
    },
    Sweep,
    Turn(Box<TurnOperation>),
    EndWithTurn(Box<EndWithTurnOperation>),
    Signal(Pick),
    Terminate(Pick),
    SignalKeyOrStart {
        kind: Name,
        key: String,
        keep_for: Duration,
    },
    /// A write to a document.
    Document(Box<Write>),
    PauseOrchestration(Pick),
    ResumeOrchestration(Pick),
    SignalKey {
        kind: Name,
        key: String,
    },
    All(Vec<Operation>),
}

/// A turn of an orchestration.
#[derive(Debug, Clone)]
pub struct TurnOperation {
    pub lease: Pick,
    pub events: u64,
    /// The number of events by which the history that the turn was made from is behind.
    pub behind: u64,
    /// The number of waiting messages that the turn consumes, if there are as many.
    pub consumed: u64,
    pub status: Option<Bytes>,
    pub values: Vec<(String, Option<Bytes>)>,
    pub tags: Vec<(String, Option<String>)>,
    /// The tasks to submit. Any parent stands for the orchestration itself.
    pub submits: Vec<NewTask>,
    pub cancels: Vec<ChildPick>,
    pub withdraws: Vec<ChildPick>,
    pub leaves_unread: bool,
    pub next: NextTurn,
}

/// A task that a turn cancels or withdraws.
#[derive(Debug, Clone, Copy)]
pub enum ChildPick {
    /// The task with this number.
    Task(Pick),
    /// The tasks with this reference.
    Reference(u64),
}

/// An end of an attempt with a turn of the orchestration that submitted the task.
#[derive(Debug, Clone)]
pub struct EndWithTurnOperation {
    /// The lease, among those of tasks that have a parent.
    pub lease: Pick,
    pub end: AttemptEnd,
    /// The turn; its lease is that of the orchestration.
    pub turn: TurnOperation,
    /// The number of ends of the same call on which the turn was planned. Each of them appends one
    /// event.
    pub ahead: u64,
    /// True if the turn was planned in an earlier generation.
    pub outdated: bool,
}

/// The action after a turn.
#[derive(Debug, Clone)]
pub enum NextTurn {
    Continue,
    Park(Option<Duration>),
    Complete(Option<Bytes>),
    Fail,
    Dead,
    Cancelled,
    ContinueAsNew { payload: Bytes, events: u64 },
}

/// An index into the known things, from the newest at 0. Past the oldest it wraps around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick(pub usize);

impl Pick {
    /// Returns the picked thing, or `None` if there is none.
    #[must_use]
    pub fn of<T: Copy>(self, oldest_first: &[T]) -> Option<T> {
        let newest = oldest_first.len().checked_sub(1)?;
        oldest_first.get(newest - self.0 % oldest_first.len()).copied()
    }
}
