//! Output of running tasks.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::api::outcome::{Outcome, Refusal};
use crate::api::output::{OutputPiece, OutputStream, TaskOutput};
use crate::api::task::{Lease, TaskId};
use crate::model::state::State;
use crate::rules::output;

/// The output of the last attempt that wrote any. Field names are part of the schema of PostgreSQL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Output {
    pub(crate) claim: u32,
    pub(crate) attempt: u32,
    /// The end of each stream.
    pub(crate) ends: [u64; 2],
    /// The pieces that are kept. A loaded task has only those that were appended since it was
    /// loaded.
    #[serde(skip)]
    pub(crate) pieces: Vec<OutputPiece>,
}

impl Output {
    /// Returns the number of bytes that the stream has received, including dropped ones.
    pub(crate) fn end(&self, stream: OutputStream) -> u64 {
        self.ends[usize::from(stream.code())]
    }

    /// Returns the output without its pieces.
    #[cfg(feature = "postgres")]
    pub(crate) fn without_pieces(&self) -> Self {
        Self { pieces: Vec::new(), ..*self }
    }

    /// Appends a piece, and drops the oldest pieces of its stream beyond the bound. A piece that
    /// stands for the result replaces all of them.
    fn append(&mut self, piece: OutputPiece) {
        let (stream, end) = (piece.stream, piece.end());
        if piece.is_of_result() {
            self.pieces.retain(|piece| piece.stream != stream);
        }
        self.ends[usize::from(stream.code())] = end;
        self.pieces.push(piece);
        if output::cut_to(end).is_some() {
            self.pieces.retain(|piece| piece.stream != stream || output::is_kept(piece, end));
        }
    }

    /// Returns at most `limit` bytes of kept output from byte `from` on. `result` is the result of
    /// the task.
    fn read(&self, stream: OutputStream, from: u64, limit: usize, result: Option<&Bytes>) -> TaskOutput {
        let (claim, attempt, end) = (self.claim, self.attempt, self.end(stream));
        let bytes =
            |piece: &OutputPiece| if piece.is_of_result() { result.cloned() } else { Some(piece.bytes.clone()) };
        let read = |piece: &OutputPiece| Some(OutputPiece { bytes: bytes(piece)?, ..*piece });
        let pieces = || self.pieces.iter().filter(|piece| piece.stream == stream).filter_map(read);
        let kept: u64 = pieces().map(|piece| u64::from(piece.length)).sum();
        let unread = pieces().filter(|piece| piece.end() > from);
        TaskOutput { claim, attempt, end, cut: end.saturating_sub(kept), pieces: up_to(unread, limit) }
    }
}

/// Returns pieces up to the one with which they reach `limit` bytes.
pub(crate) fn up_to(pieces: impl IntoIterator<Item = OutputPiece>, limit: usize) -> Vec<OutputPiece> {
    let mut taken = 0;
    let has_room = |piece: &OutputPiece| {
        let had_room = taken < limit;
        taken += piece.length as usize;
        had_room
    };
    pieces.into_iter().take_while(has_room).collect()
}

impl State {
    /// Appends to the output of a running attempt. The first piece of an attempt replaces the
    /// output of the previous attempt. A piece that was appended before changes nothing, so the
    /// write can be repeated.
    pub(in crate::model) fn append_output(&mut self, lease: Lease, piece: OutputPiece) -> Result<Outcome, Refusal> {
        let task = self.check_lease(lease)?;
        let (claim, attempt) = (lease.claim, task.attempt());
        let present = task.output.as_deref().filter(|output| output.claim == claim);
        if !output::appends(&piece, present.map_or(0, |output| output.end(piece.stream)))? {
            return Ok(Outcome::Done);
        }
        let new = Output { claim, attempt, ends: [0; 2], pieces: Vec::new() };
        self.tasks.change(lease.task, |task| {
            if task.output.as_ref().is_none_or(|output| output.claim != claim) {
                task.output = Some(Arc::new(new));
            }
            task.output.iter_mut().for_each(|output| Arc::make_mut(output).append(piece.clone()));
        });
        self.hint.output += 1;
        Ok(Outcome::Done)
    }

    /// Returns output of a task from byte `from` on, at most `limit` bytes; `None` if the task has
    /// none.
    pub(crate) fn task_output(
        &self,
        task: TaskId,
        stream: OutputStream,
        from: u64,
        limit: usize,
    ) -> Option<TaskOutput> {
        let task = self.tasks.get(task)?;
        Some(task.output.as_ref()?.read(stream, from, limit, task.result.as_ref()))
    }
}
