//! The output of running tasks. It has tables of its own, so a task without output costs nothing.

use rusqlite::{OptionalExtension, params};

use crate::api::error::Result;
use crate::api::outcome::Outcome;
use crate::api::output::OutputPiece;
use crate::api::task::{Lease, TaskId};
use crate::bounds::OUTPUT_END_BYTES;
use crate::rules::output;
use crate::sqlite::commit::transaction::{Transaction, VerbResult};

/// The claim that wrote the stored output, and the ends of its two streams.
type StoredOutput = (u32, [u64; 2]);

impl Transaction<'_> {
    /// Appends a piece to the output of a running attempt. The first piece of an attempt replaces
    /// the output of the previous attempt.
    pub(in crate::sqlite) fn append_output(&mut self, lease: Lease, piece: &OutputPiece) -> VerbResult<Outcome> {
        let (task, _) = self.running_under(lease)?;
        let present = self.output_of(task.id)?;
        let is_first = present.is_none_or(|(claim, _)| claim != lease.claim);
        let mut ends = present.filter(|_| !is_first).map_or([0; 2], |(_, ends)| ends);
        let end = &mut ends[usize::from(piece.stream.code())];
        if !output::appends(piece, *end)? {
            return Ok(Outcome::Done);
        }
        *end = piece.end();
        if is_first && present.is_some() {
            self.remove_output(task.id)?;
        }
        let attempt = task.attempts.saturating_add(1);
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO output (task, claim, attempt, stdout, stderr) VALUES (?, ?, ?, ?, ?)",
            )?
            .execute(params![task.id.0, lease.claim, attempt, ends[0], ends[1]])?;
        self.put_piece(task.id, piece)?;
        self.hint.output += 1;
        Ok(Outcome::Done)
    }

    /// Returns the claim whose output is stored, and the ends of its two streams.
    fn output_of(&self, task: TaskId) -> Result<Option<StoredOutput>> {
        let mut statement =
            self.connection.prepare_cached("SELECT claim, stdout, stderr FROM output WHERE task = ?")?;
        Ok(statement.query_row([task.0], |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?]))).optional()?)
    }

    /// Inserts a piece, and deletes pieces beyond the limit of kept output. A piece that stands for
    /// the result replaces the pieces of its stream.
    fn put_piece(&self, task: TaskId, piece: &OutputPiece) -> Result<()> {
        let stream = piece.stream.code();
        if piece.is_of_result() {
            self.connection
                .prepare_cached("DELETE FROM output_piece WHERE task = ? AND stream = ?")?
                .execute(params![task.0, stream])?;
        }
        self.connection
            .prepare_cached("INSERT INTO output_piece (task, stream, at, length, bytes) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![task.0, stream, piece.at, piece.length, &piece.bytes[..]])?;
        if let Some(cut) = output::cut_to(piece.end()) {
            self.connection
                .prepare_cached(
                    "DELETE FROM output_piece WHERE task = ? AND stream = ? AND at >= ? AND at < ?4 AND at + length <= ?4",
                )?
                .execute(params![task.0, stream, OUTPUT_END_BYTES as u64, cut])?;
        }
        Ok(())
    }

    /// Removes the output of a task.
    pub(in crate::sqlite::verbs) fn remove_output(&self, task: TaskId) -> Result<()> {
        let removed = self.connection.prepare_cached("DELETE FROM output WHERE task = ?")?.execute([task.0])?;
        if removed > 0 {
            self.connection.prepare_cached("DELETE FROM output_piece WHERE task = ?")?.execute([task.0])?;
        }
        Ok(())
    }
}
