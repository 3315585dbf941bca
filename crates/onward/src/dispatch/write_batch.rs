//! The writes of one store call.

use std::sync::Arc;

use onward_store::{AfterFailure, Claim, Lease, OpenSession, Outcome, OutputPiece, OutputStream, SessionId, Write};
use tokio::sync::oneshot;

use super::outbox::{OutboxReply, QueuedWrite};
use super::run_state::{AttemptEnd, EndedAttempt};
use crate::handlers::{Attempt, ChildrenWait};
use crate::orchestration::TurnWrite;

/// Writes, and for each its purpose, by which its outcome is applied.
#[derive(Debug, Default)]
pub(crate) struct WriteBatch {
    pub(crate) writes: Vec<Write>,
    pub(crate) pending: Vec<PendingWrite>,
}

/// The purpose of a write in a batch.
#[derive(Debug)]
pub(crate) enum PendingWrite {
    Open,
    AttemptEnd(EndedAttempt),
    Report(Arc<Attempt>),
    Output(Arc<Attempt>, OutputPiece),
    RecordIo,
    Renew,
    Claim { limit: usize },
    ClaimTurns { limit: usize },
    Turn(oneshot::Sender<onward_store::Result<Outcome>>),
    Queued(oneshot::Sender<OutboxReply>),
    Sweep,
    Retire,
    Close(SessionId),
}

impl WriteBatch {
    pub(crate) fn with_capacity(ends: usize) -> Self {
        Self { writes: Vec::with_capacity(ends + 2), pending: Vec::with_capacity(ends + 2) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns true if the batch has a claim.
    pub(crate) fn claims(&self) -> bool {
        self.pending
            .iter()
            .any(|pending| matches!(pending, PendingWrite::Claim { .. } | PendingWrite::ClaimTurns { .. }))
    }

    fn add(&mut self, write: Write, pending: PendingWrite) {
        self.writes.push(write);
        self.pending.push(pending);
    }

    pub(crate) fn open(&mut self, open: OpenSession) {
        self.add(Write::OpenSession(open), PendingWrite::Open);
    }

    /// Ends an attempt, after its last progress and output and the bytes that it has moved. Returns
    /// an attempt whose end is already written.
    pub(crate) fn end(&mut self, ended: EndedAttempt) -> Option<EndedAttempt> {
        let Some(end) = write_of(&ended) else { return Some(ended) };
        let piece = piece_of_result(&ended);
        warn_of_wrong_result(&ended);
        // The standard output is written once, as the result.
        let streams = if piece.is_some() { &[OutputStream::Stderr][..] } else { &OutputStream::ALL };
        self.report_progress(&ended.attempt);
        self.append_output(&ended.attempt, streams);
        let io = ended.attempt.io.now();
        if !io.is_none() {
            self.add(Write::RecordIo { lease: ended.attempt.task.lease, io }, PendingWrite::RecordIo);
        }
        self.add(with_spawned(end, &ended, piece), PendingWrite::AttemptEnd(ended));
        None
    }

    /// Saves the progress and the output of an attempt, if they changed.
    pub(crate) fn report(&mut self, attempt: &Arc<Attempt>) {
        self.report_progress(attempt);
        self.append_output(attempt, &OutputStream::ALL);
    }

    fn report_progress(&mut self, attempt: &Arc<Attempt>) {
        let lease = attempt.task.lease;
        if attempt.progress.take_unsaved() {
            let report = Write::Report {
                lease,
                fraction: attempt.progress.fraction(),
                message: attempt.progress.message(),
                bytes: attempt.progress.bytes(),
            };
            self.add(report, PendingWrite::Report(Arc::clone(attempt)));
        }
    }

    fn append_output(&mut self, attempt: &Arc<Attempt>, streams: &[OutputStream]) {
        for piece in attempt.output.take(streams) {
            let append = Write::AppendOutput { lease: attempt.task.lease, piece: piece.clone() };
            self.add(append, PendingWrite::Output(Arc::clone(attempt), piece));
        }
    }

    pub(crate) fn renew(&mut self, session: SessionId) {
        self.add(Write::RenewSession { session }, PendingWrite::Renew);
    }

    pub(crate) fn claim(&mut self, claim: Claim) {
        let limit = claim.limit;
        self.add(Write::Claim(claim), PendingWrite::Claim { limit });
    }

    /// Writes a turn, and sends the result to the instance that ran it.
    pub(crate) fn turn(&mut self, TurnWrite { turn, reply }: TurnWrite) {
        self.add(Write::Turn(turn), PendingWrite::Turn(reply));
    }

    /// Writes a queued write, and sends the result to its caller.
    pub(crate) fn queued(&mut self, QueuedWrite { write, reply }: QueuedWrite) {
        self.add(write, PendingWrite::Queued(reply));
    }

    /// Claims orchestrations that have something to process.
    pub(crate) fn claim_turns(&mut self, claim: Claim) {
        let limit = claim.limit;
        self.add(Write::Claim(claim), PendingWrite::ClaimTurns { limit });
    }

    pub(crate) fn close(&mut self, session: SessionId) {
        self.add(Write::CloseSession { session }, PendingWrite::Close(session));
    }

    /// Gives other sessions the tasks that prefer a session which claims nothing more.
    pub(crate) fn retire(&mut self, session: SessionId) {
        self.add(Write::Retire { session }, PendingWrite::Retire);
    }

    pub(crate) fn sweep(&mut self) {
        self.add(Write::Sweep, PendingWrite::Sweep);
    }
}

impl PendingWrite {
    /// Returns true if the write may give the session a lease that only its reply reports.
    pub(crate) fn gives_leases(&self) -> bool {
        match self {
            Self::Claim { .. } | Self::ClaimTurns { .. } => true,
            Self::AttemptEnd(ended) => {
                matches!(ended.end, AttemptEnd::Fail { next: AfterFailure::Retry { hold: true, .. }, .. })
            }
            Self::Open
            | Self::Report(_)
            | Self::Output(..)
            | Self::RecordIo
            | Self::Turn(_)
            | Self::Queued(_)
            | Self::Renew
            | Self::Sweep
            | Self::Retire
            | Self::Close(_) => false,
        }
    }
}

/// Returns a piece that stands for the standard output of an attempt whose result is that output.
fn piece_of_result(ended: &EndedAttempt) -> Option<OutputPiece> {
    let AttemptEnd::Complete(Some(result)) = &ended.end else { return None };
    ended.attempt.output.piece_of_result(result)
}

/// Warns of a handler whose result is not the standard output that it declared to be the result.
fn warn_of_wrong_result(ended: &EndedAttempt) {
    let AttemptEnd::Complete(result) = &ended.end else { return };
    let (task, result) = (&ended.attempt.task, result.as_deref().unwrap_or_default());
    if let Some(output) = ended.attempt.output.other_than_result(result) {
        tracing::warn!(
            task = task.lease.task.0,
            kind = %task.kind,
            output_bytes = output,
            result_bytes = result.len(),
            "a handler declared that its result is its standard output, and returned another result; both are kept, long output \
             without its middle. Return the output as the result, or leave `result_is_output` out"
        );
    }
}

/// Returns a successful end together with the tasks that the handler has spawned and the piece that
/// stands for its result, as one atomic write. The end may have a turn with it.
fn with_spawned(end: Write, ended: &EndedAttempt, piece: Option<OutputPiece>) -> Write {
    let spawned = match ended.end {
        AttemptEnd::Complete(_) | AttemptEnd::AwaitChildren(_) | AttemptEnd::AwaitCompletion(_) => {
            ended.attempt.spawned.all()
        }
        AttemptEnd::Fail { .. }
        | AttemptEnd::Release
        | AttemptEnd::Move(_)
        | AttemptEnd::ConfirmCancel(_)
        | AttemptEnd::Finished => Vec::new(),
    };
    if spawned.is_empty() && piece.is_none() {
        return end;
    }
    let submits = spawned.into_iter().map(|new| Write::Submit(Box::new(new)));
    let append = piece.map(|piece| Write::AppendOutput { lease: ended.attempt.task.lease, piece });
    Write::All(submits.chain(append).chain([end]).collect())
}

fn release(lease: Lease) -> Write {
    Write::Release { lease, after: std::time::Duration::ZERO }
}

/// Returns the write that ends an attempt, or `None` if its handler has written the end itself.
fn write_of(ended: &EndedAttempt) -> Option<Write> {
    let lease = ended.attempt.task.lease;
    if let Some(write) = ended.planned.as_ref().and_then(|planned| planned.write(lease, &ended.end)) {
        return Some(write);
    }
    Some(match &ended.end {
        AttemptEnd::Complete(result) => Write::Complete { lease, result: result.clone() },
        AttemptEnd::Fail { error, next } => Write::Fail { lease, error: error.clone(), next: *next },
        AttemptEnd::AwaitChildren(ChildrenWait { checkpoint, on_failure }) => {
            Write::AwaitChildren { lease, checkpoint: checkpoint.clone(), on_failure: *on_failure }
        }
        AttemptEnd::AwaitCompletion(wait) => Write::AwaitCompletion { lease, wait: *wait },
        AttemptEnd::Release => release(lease),
        AttemptEnd::Move(queue) => {
            Write::All(vec![Write::Move { task: lease.task, queue: queue.clone() }, release(lease)])
        }
        AttemptEnd::ConfirmCancel(reason) => Write::ConfirmCancel { lease, reason: reason.clone() },
        AttemptEnd::Finished => return None,
    })
}
