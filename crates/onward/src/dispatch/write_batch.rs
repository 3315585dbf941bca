//! What one call of the store carries.

use std::sync::Arc;

use onward_store::{AfterFailure, Claim, Lease, OpenSession, Outcome, SessionId, Write};
use tokio::sync::oneshot;

use super::outbox::{Delivery, Letter};
use super::run_state::{End, Ended};
use crate::handlers::{Attempt, ChildrenWait};
use crate::orchestration::TurnWrite;

/// Writes, and for each what it is, so that its outcome can be told.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) writes: Vec<Write>,
    pub(crate) parts: Vec<Part>,
}

/// What a write of a batch is.
#[derive(Debug)]
pub(crate) enum Part {
    Open,
    End(Ended),
    Report(Arc<Attempt>),
    RecordIo,
    Renew,
    Claim { limit: usize },
    ClaimTurns { limit: usize },
    Turn(oneshot::Sender<onward_store::Result<Outcome>>),
    Letter(oneshot::Sender<Delivery>),
    Sweep,
    Retire,
    Close(SessionId),
}

impl Batch {
    pub(crate) fn with_room_for(ends: usize) -> Self {
        Self { writes: Vec::with_capacity(ends + 2), parts: Vec::with_capacity(ends + 2) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Whether something is claimed.
    pub(crate) fn claims(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Claim { .. } | Part::ClaimTurns { .. }))
    }

    fn add(&mut self, write: Write, part: Part) {
        self.writes.push(write);
        self.parts.push(part);
    }

    pub(crate) fn open(&mut self, open: OpenSession) {
        self.add(Write::OpenSession(open), Part::Open);
    }

    /// Ends an attempt, after the last progress that it told and what it has moved; one whose end
    /// is written already is handed back.
    pub(crate) fn end(&mut self, ended: Ended) -> Option<Ended> {
        let Some(end) = write(&ended) else { return Some(ended) };
        if ended.attempt.progress.take_unsaved() {
            self.report(Arc::clone(&ended.attempt));
        }
        let io = ended.attempt.io.now();
        if !io.is_none() {
            self.add(Write::RecordIo { lease: ended.attempt.task.lease, io }, Part::RecordIo);
        }
        self.add(with_spawned(end, &ended), Part::End(ended));
        None
    }

    pub(crate) fn report(&mut self, attempt: Arc<Attempt>) {
        let report = Write::Report {
            lease: attempt.task.lease,
            fraction: attempt.progress.fraction(),
            message: attempt.progress.message(),
            bytes: attempt.progress.bytes(),
        };
        self.add(report, Part::Report(attempt));
    }

    pub(crate) fn renew(&mut self, session: SessionId) {
        self.add(Write::RenewSession { session }, Part::Renew);
    }

    pub(crate) fn claim(&mut self, claim: Claim) {
        let limit = claim.limit;
        self.add(Write::Claim(claim), Part::Claim { limit });
    }

    /// Writes a turn; whoever played it is told what became of that.
    pub(crate) fn turn(&mut self, TurnWrite { turn, answer }: TurnWrite) {
        self.add(Write::Turn(turn), Part::Turn(answer));
    }

    /// Writes what somebody has handed in, who is told what became of it.
    pub(crate) fn letter(&mut self, Letter { write, answer }: Letter) {
        self.add(write, Part::Letter(answer));
    }

    /// Claims orchestrations for which something has come.
    pub(crate) fn claim_turns(&mut self, claim: Claim) {
        let limit = claim.limit;
        self.add(Write::Claim(claim), Part::ClaimTurns { limit });
    }

    pub(crate) fn close(&mut self, session: SessionId) {
        self.add(Write::CloseSession { session }, Part::Close(session));
    }

    /// Lets others have what prefers a session that claims nothing more.
    pub(crate) fn retire(&mut self, session: SessionId) {
        self.add(Write::Retire { session }, Part::Retire);
    }

    pub(crate) fn sweep(&mut self) {
        self.add(Write::Sweep, Part::Sweep);
    }
}

impl Part {
    /// Whether the write may give the session a lease of which only its answer tells.
    pub(crate) fn gives_leases(&self) -> bool {
        match self {
            Self::Claim { .. } | Self::ClaimTurns { .. } => true,
            Self::End(ended) => matches!(ended.end, End::Fail { next: AfterFailure::Retry { hold: true, .. }, .. }),
            Self::Open
            | Self::Report(_)
            | Self::RecordIo
            | Self::Turn(_)
            | Self::Letter(_)
            | Self::Renew
            | Self::Sweep
            | Self::Retire
            | Self::Close(_) => false,
        }
    }
}

/// The end of an attempt that ended well, with what its handler has spawned: all of it, or nothing.
fn with_spawned(end: Write, ended: &Ended) -> Write {
    let spawned = match ended.end {
        End::Complete(_) | End::AwaitChildren(_) | End::AwaitCompletion(_) => ended.attempt.spawned.all(),
        End::Fail { .. } | End::Release | End::Move(_) | End::ConfirmCancel(_) | End::Finished => Vec::new(),
    };
    if spawned.is_empty() {
        return end;
    }
    let submits = spawned.into_iter().map(|new| Write::Submit(Box::new(new)));
    Write::All(submits.chain([end]).collect())
}

fn release(lease: Lease) -> Write {
    Write::Release { lease, after: std::time::Duration::ZERO }
}

/// What ends an attempt; `None` if its handler has written that itself.
fn write(ended: &Ended) -> Option<Write> {
    let lease = ended.attempt.task.lease;
    Some(match &ended.end {
        End::Complete(result) => Write::Complete { lease, result: result.clone() },
        End::Fail { error, next } => Write::Fail { lease, error: error.clone(), next: *next },
        End::AwaitChildren(ChildrenWait { memo, on_failure }) => {
            Write::AwaitChildren { lease, memo: memo.clone(), on_failure: *on_failure }
        }
        End::AwaitCompletion(wait) => Write::AwaitCompletion { lease, wait: *wait },
        End::Release => release(lease),
        End::Move(queue) => Write::All(vec![Write::Move { task: lease.task, queue: queue.clone() }, release(lease)]),
        End::ConfirmCancel(reason) => Write::ConfirmCancel { lease, reason: reason.clone() },
        End::Finished => return None,
    })
}
