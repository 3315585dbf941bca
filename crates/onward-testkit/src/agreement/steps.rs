//! What a sequence is made of.

use std::time::Duration;

use bytes::Bytes;
use onward_store::{
    AfterFailure, BulkVerb, ByteProgress, CompletionWait, Finish, FireSchedule, Io, KindSelection, Name, NewTask,
    NextFiring, OnDependencyFailure, Priority, Prune, QueueMode, QueueSelection, Scope, Served, SetLimit, SetQueue,
    SetSchedule, TaskFilter, TaskState,
};

/// One step of a sequence.
#[derive(Debug, Clone)]
pub enum Step {
    /// Writes in one call.
    Apply(Vec<Act>),
    /// Time goes on.
    Advance(Duration),
    /// Somebody sets wall time back; steady time stands.
    SetBack(Duration),
    /// The store is closed and opened again.
    Reopen,
}

/// A write that names sessions, leases and tasks by where they stand among those known when it is
/// played.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is the write of the same name")]
pub enum Act {
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
        memo: Bytes,
        on_failure: OnDependencyFailure,
    },
    ConfirmCancel(Pick),
    AwaitCompletion {
        lease: Pick,
        wait: CompletionWait,
    },
    Finish {
        lease: Pick,
        by_number: bool,
        finish: Finish,
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
    KeepMemo(Pick),
    RecordIo {
        lease: Pick,
        io: Io,
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
    Turn(Box<TurnAct>),
    Signal(Pick),
    Terminate(Pick),
    SignalKeyOrStart {
        kind: Name,
        key: String,
        keep_for: Duration,
    },
    PauseOrchestration(Pick),
    ResumeOrchestration(Pick),
    SignalKey {
        kind: Name,
        key: String,
    },
    All(Vec<Act>),
}

/// A turn of an orchestration.
#[derive(Debug, Clone)]
pub struct TurnAct {
    pub lease: Pick,
    pub events: u64,
    /// By how many events the history that it was made from is behind.
    pub behind: u64,
    /// How many of the messages that wait it has taken in, if there are as many.
    pub consumed: u64,
    pub status: Option<Bytes>,
    pub values: Vec<(String, Option<Bytes>)>,
    pub tags: Vec<(String, Option<String>)>,
    /// A parent stands for the orchestration itself.
    pub submits: Vec<NewTask>,
    pub cancels: Vec<Pick>,
    pub leaves_unread: bool,
    pub next: NextTurn,
}

/// How an orchestration goes on.
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

/// Which of the things known: 0 for the newest, and so on; beyond the oldest it begins again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick(pub usize);

impl Pick {
    /// The one that is picked; `None` if there is none.
    #[must_use]
    pub fn of<T: Copy>(self, oldest_first: &[T]) -> Option<T> {
        let newest = oldest_first.len().checked_sub(1)?;
        oldest_first.get(newest - self.0 % oldest_first.len()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pick_counts_from_the_newest() {
        let picked = [0, 1, 2, 3].map(|index| Pick(index).of(&['a', 'b', 'c']));
        assert_eq!(picked, [Some('c'), Some('b'), Some('a'), Some('c')]);
    }
}
