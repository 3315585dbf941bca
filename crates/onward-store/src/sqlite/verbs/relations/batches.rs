//! Batches: pending batches collect items, and become batches when they are ready.

use std::num::NonZeroU32;

use rusqlite::{OptionalExtension, Row, params};

use crate::api::aggregate::Aggregate;
use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::outcome::Refusal;
use crate::api::task::{NewTask, Priority, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::aggregate::{self, ItemFacts, PendingBatchState};
use crate::rules::dependencies::Ended;
use crate::sqlite::columns::links::BATCH;
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::cache::next_ready_batch;
use crate::sqlite::commit::transaction::{LiveTask, Transaction, VerbResult};
use crate::sqlite::verbs::tasks::control::EndedTask;

/// Returns true if a live task is an item of a pending batch or of a batch.
pub(in crate::sqlite::verbs) fn is_batch_item(task: &LiveTask) -> bool {
    task.blocked && task.options.aggregate.is_some()
}

/// Decodes a pending batch.
fn pending_batch_of(row: &Row<'_>) -> rusqlite::Result<PendingBatchState> {
    let moment = |index| Ok::<_, rusqlite::Error>(Timestamp::from_microseconds(row.get(index)?));
    Ok(PendingBatchState {
        began_with: TaskId(row.get(0)?),
        items: row.get(1)?,
        bytes: row.get::<_, i64>(2)?.cast_unsigned(),
        began_at: moment(3)?,
        size: row.get(4)?,
        deadline: moment(5)?,
        ready_at: moment(6)?,
    })
}

impl Transaction<'_> {
    /// Adds a new task to the pending batch of its sub-queue, unless it has ended already.
    pub(in crate::sqlite::verbs) fn add_new_to_batch(
        &mut self,
        id: TaskId,
        sub_queue: i64,
        aggregate: Aggregate,
        new: &NewTask,
    ) -> Result<()> {
        if new.parent.is_some() && !self.is_live(id)? {
            return Ok(());
        }
        self.add_to_batch(id, sub_queue, aggregate, new.payload.len() as u64)
    }

    /// Adds a task to the pending batch of a sub-queue.
    pub(in crate::sqlite::verbs) fn add_to_batch(
        &mut self,
        id: TaskId,
        sub_queue: i64,
        aggregate: Aggregate,
        bytes: u64,
    ) -> Result<()> {
        let mut before = self.pending_batch(sub_queue)?;
        if before.is_some_and(|pending_batch| !pending_batch.has_room_for(bytes)) {
            self.submit_batch(sub_queue)?;
            before = None;
        }
        let pending_batch = PendingBatchState::joined(before, id, aggregate, bytes, self.now);
        self.connection
            .prepare_cached("INSERT INTO pending_item (sub_queue, task, bytes) VALUES (?, ?, ?)")?
            .execute(params![sub_queue, id.0, bytes.cast_signed()])?;
        self.put_pending_batch(sub_queue, &pending_batch)?;
        if pending_batch.is_full() {
            self.submit_batch(sub_queue)?;
        }
        self.cache.next_ready_batch = next_ready_batch(self.connection)?;
        Ok(())
    }

    /// Reads the pending batch of a sub-queue.
    fn pending_batch(&self, sub_queue: i64) -> Result<Option<PendingBatchState>> {
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/relations/pending_batch.sql"))?;
        Ok(statement.query_row([sub_queue], pending_batch_of).optional()?)
    }

    /// Writes the pending batch of a sub-queue.
    fn put_pending_batch(&self, sub_queue: i64, pending_batch: &PendingBatchState) -> Result<()> {
        let PendingBatchState { began_with, items, bytes, began_at, size, deadline, ready_at } = *pending_batch;
        self.connection.prepare_cached(include_str!("../../sql/relations/put_pending_batch.sql"))?.execute(params![
            sub_queue,
            began_with.0,
            items,
            bytes.cast_signed(),
            began_at.as_microseconds(),
            size,
            deadline.as_microseconds(),
            ready_at.as_microseconds()
        ])?;
        Ok(())
    }

    /// Submits the pending batch of a sub-queue. Returns its number of items.
    fn submit_batch(&mut self, sub_queue: i64) -> Result<usize> {
        let items = self.pending_items(sub_queue)?;
        let facts: Vec<ItemFacts> = items.iter().map(|(_, facts)| *facts).collect();
        let count = u32::try_from(items.len()).ok().and_then(NonZeroU32::new);
        let Some((count, names)) = count.zip(self.cache.names.sub_queue(sub_queue)) else { return Ok(0) };
        let mut new = NewTask::of(names.kind_name.clone());
        (new.queue, new.group) = (names.queue_name.clone(), names.group_name.clone());
        aggregate::adopt(&mut new, &facts);
        let batch = self.insert_with(&new, TaskOptions { items: Some(count), ..TaskOptions::of(&new) })?;
        self.note_batch(batch)?;
        self.connection
            .prepare_cached(
                "INSERT INTO batch_item (task, batch) SELECT task, ? FROM pending_item WHERE sub_queue = ?",
            )?
            .execute([batch.0, sub_queue])?;
        self.connection.prepare_cached("DELETE FROM pending_item WHERE sub_queue = ?")?.execute([sub_queue])?;
        self.connection.prepare_cached("DELETE FROM pending_batch WHERE sub_queue = ?")?.execute([sub_queue])?;
        for (item, _) in &items {
            self.log(*item, sub_queue, Change::Batched { batch });
        }
        Ok(items.len())
    }

    /// Returns the items of the pending batch of a sub-queue, the oldest first.
    fn pending_items(&self, sub_queue: i64) -> Result<Vec<(TaskId, ItemFacts)>> {
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/relations/pending_items.sql"))?;
        let items = statement.query_map([sub_queue], |row| {
            let TaskOptions { timeout, heartbeat_timeout, retention, retry, expected_io: io, .. } = row.get(2)?;
            let priority = Priority(row.get(1)?);
            Ok((TaskId(row.get(0)?), ItemFacts { priority, timeout, heartbeat_timeout, retention, retry, io }))
        })?;
        Ok(items.collect::<rusqlite::Result<_>>()?)
    }

    /// Submits the pending batches that are ready, the longest overdue first. Returns the number of
    /// batches.
    pub(in crate::sqlite::verbs) fn submit_ready_batches(&mut self) -> Result<u64> {
        let now = self.now.as_microseconds();
        if self.cache.next_ready_batch.is_none_or(|at| at > now) {
            return Ok(0);
        }
        let (mut batches, mut items) = (0, 0);
        for sub_queue in self.sub_queues_with_ready_batch(now)? {
            if items >= bounds::SWEEP {
                break;
            }
            items += self.submit_batch(sub_queue)?;
            batches += 1;
        }
        self.cache.next_ready_batch = next_ready_batch(self.connection)?;
        Ok(batches)
    }

    /// Returns the sub-queues whose pending batch is ready.
    fn sub_queues_with_ready_batch(&self, now: i64) -> Result<Vec<i64>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT sub_queue FROM pending_batch WHERE ready_at <= ? ORDER BY ready_at, first_item LIMIT ?",
        )?;
        let sub_queues = statement.query_map(params![now, bounds::SWEEP.cast_signed()], |row| row.get(0))?;
        Ok(sub_queues.collect::<rusqlite::Result<_>>()?)
    }

    /// Removes a task from the pending batch of its sub-queue. Returns the size of its payload in
    /// bytes if it was an item.
    pub(in crate::sqlite::verbs) fn leave_pending_batch(&mut self, task: &LiveTask) -> Result<Option<u64>> {
        let bytes: Option<i64> = self
            .connection
            .prepare_cached("DELETE FROM pending_item WHERE sub_queue = ? AND task = ? RETURNING bytes")?
            .query_row([task.sub_queue, task.id.0], |row| row.get(0))
            .optional()?;
        let Some(bytes) = bytes.map(i64::cast_unsigned) else { return Ok(None) };
        match self.pending_batch(task.sub_queue)?.and_then(|pending_batch| pending_batch.left(bytes)) {
            Some(left) => self.put_pending_batch(task.sub_queue, &left)?,
            None => {
                self.connection
                    .prepare_cached("DELETE FROM pending_batch WHERE sub_queue = ?")?
                    .execute([task.sub_queue])?;
            }
        }
        self.cache.next_ready_batch = next_ready_batch(self.connection)?;
        Ok(Some(bytes))
    }

    /// Removes an ended or removed item from its pending batch or its batch, unless it ended with
    /// the batch.
    pub(in crate::sqlite::verbs) fn leave_batch(&mut self, task: &LiveTask, is_removed: bool) -> Result<()> {
        let Some(batch) = self.batch_of(task.id)? else { return self.leave_pending_batch(task).map(drop) };
        let live = self.live(batch)?;
        if live.is_some() || is_removed {
            self.forget_batch_of(task.id)?;
        }
        if let Some(live) = live.filter(|live| live.running.is_none())
            && self.next_item(batch, 0)?.is_none()
        {
            self.record_error(&live, live.attempts, aggregate::EMPTIED)?;
            self.end_unheld(&live, TaskState::Cancelled)?;
        }
        Ok(())
    }

    /// Returns the batch of an item.
    fn batch_of(&self, item: TaskId) -> Result<Option<TaskId>> {
        let mut statement = self.connection.prepare_cached("SELECT batch FROM batch_item WHERE task = ?")?;
        Ok(statement.query_row([item.0], |row| row.get(0).map(TaskId)).optional()?)
    }

    /// Deletes the record of the batch that a task is an item of.
    pub(in crate::sqlite::verbs) fn forget_batch_of(&self, item: TaskId) -> Result<()> {
        self.connection.prepare_cached("DELETE FROM batch_item WHERE task = ?")?.execute([item.0])?;
        Ok(())
    }

    /// Returns the first item of a batch with at least the number `from`.
    fn next_item(&self, batch: TaskId, from: i64) -> Result<Option<TaskId>> {
        let mut statement =
            self.connection.prepare_cached("SELECT min(task) FROM batch_item WHERE batch = ? AND task >= ?")?;
        Ok(statement.query_row([batch.0, from], |row| row.get::<_, Option<i64>>(0))?.map(TaskId))
    }

    /// Returns the live batch of which a task is an item.
    pub(in crate::sqlite::verbs) fn live_batch_of(&self, task: &LiveTask) -> Result<Option<LiveTask>> {
        let batch = if is_batch_item(task) { self.batch_of(task.id)? } else { None };
        batch.map_or(Ok(None), |batch| self.live(batch))
    }

    /// Returns the state of a live task. An item is running while its batch is.
    pub(in crate::sqlite::verbs) fn standing_of(&self, task: &LiveTask) -> Result<TaskState> {
        let runs = self.live_batch_of(task)?.is_some_and(|batch| batch.running.is_some());
        Ok(if runs { TaskState::Running } else { task.state() })
    }

    /// Returns the items of a batch whose cancellation was requested.
    fn items_to_cancel(&self, batch: &LiveTask) -> Result<Vec<TaskId>> {
        if batch.links & BATCH == 0 {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/relations/items_to_cancel.sql"))?;
        let items_to_cancel = statement.query_map([batch.id.0], |row| row.get(0).map(TaskId))?;
        Ok(items_to_cancel.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns true if the cancellation of an item of a batch was requested.
    pub(in crate::sqlite::verbs) fn has_items_to_cancel(&self, batch: &LiveTask) -> Result<bool> {
        Ok(!self.items_to_cancel(batch)?.is_empty())
    }

    /// Finishes making a batch wait again: removes the items whose cancellation was requested while
    /// it ran. Returns the new state of the task.
    pub(in crate::sqlite::verbs) fn let_go(&mut self, task: &LiveTask) -> Result<TaskState> {
        let items_to_cancel = self.items_to_cancel(task)?;
        if items_to_cancel.is_empty() {
            return Ok(task.state());
        }
        for item in items_to_cancel {
            if let Some(live) = self.live(item)? {
                self.end_unheld(&live, TaskState::Cancelled)?;
            }
        }
        Ok(self.live(task.id)?.map_or(TaskState::Cancelled, |live| live.state()))
    }

    /// Returns true if a task's time to live no longer applies, because the task is an item of a
    /// batch that has started. Then deletes it.
    pub(in crate::sqlite::verbs) fn outlives(&mut self, task: &LiveTask) -> Result<bool> {
        let batch = self.live_batch_of(task)?;
        if !batch.is_some_and(|batch| aggregate::has_started(batch.state(), batch.attempts)) {
            return Ok(false);
        }
        if let Some(at) = task.expires_at {
            self.cache.index.remove_expiry(self.connection, at, task.id.0)?;
        }
        self.connection.prepare_cached("UPDATE task SET expires_at = NULL WHERE id = ?")?.execute([task.id.0])?;
        Ok(true)
    }

    /// Ends the first item of an ended batch with at least the number `from`. Returns the number to
    /// continue from, if items may be left.
    pub(super) fn end_next_item(&mut self, batch: TaskId, ended: Ended, from: i64) -> Result<Option<i64>> {
        let Some(item) = self.next_item(batch, from)? else {
            self.connection.prepare_cached("DELETE FROM batch WHERE task = ?")?.execute([batch.0])?;
            return Ok(None);
        };
        if let Some(live) = self.live(item)? {
            self.end_item(&live, batch, ended)?;
        }
        Ok(Some(item.0 + 1))
    }

    /// Records that a task is a batch with items that must end with it.
    pub(in crate::sqlite::verbs) fn note_batch(&mut self, task: TaskId) -> Result<()> {
        self.add_link(task, BATCH)?;
        self.connection.prepare_cached("INSERT OR IGNORE INTO batch (task) VALUES (?)")?.execute([task.0])?;
        Ok(())
    }

    /// Ends an item with its batch.
    fn end_item(&mut self, item: &LiveTask, batch: TaskId, ended: Ended) -> Result<()> {
        let state = aggregate::end_of_item(ended);
        if state == TaskState::Completed {
            self.count_completed(item.sub_queue, item.attempts, item.run_at, self.now.as_microseconds());
        } else if let Some(error) = aggregate::error(batch, ended, self.last_error(batch)?.as_deref()) {
            self.record_error(item, item.attempts, &error)?;
        }
        self.end_unheld(item, state)
    }

    /// Reads the last error of a task.
    pub(in crate::sqlite::verbs) fn last_error(&self, task: TaskId) -> Result<Option<String>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT message FROM attempt_error WHERE task = ? ORDER BY number DESC LIMIT 1")?;
        Ok(statement.query_row([task.0], |row| row.get(0)).optional()?)
    }

    /// Returns the ended items of an ended batch, which wait again when the batch is retried.
    pub(in crate::sqlite::verbs) fn items_to_retry(
        &self,
        batch: TaskId,
        ended: &EndedTask,
    ) -> VerbResult<Vec<(TaskId, EndedTask)>> {
        if ended.options.items.is_none() {
            return Ok(Vec::new());
        }
        let mut statement =
            self.connection.prepare_cached("SELECT task FROM batch_item WHERE batch = ? ORDER BY task")?;
        let items = statement.query_map([batch.0], |row| row.get(0).map(TaskId))?;
        let items: Vec<TaskId> = items.collect::<rusqlite::Result<_>>()?;
        if items.is_empty() {
            return Err(aggregate::without_items(batch).into());
        }
        let mut to_retry = Vec::with_capacity(items.len());
        for item in items {
            let Some(ended) = self.ended(item)? else { continue };
            if let Some(by) = self.key_taken_by(&ended)? {
                return Err(Refusal::KeyTaken { task: item, by }.into());
            }
            to_retry.push((item, ended));
        }
        Ok(to_retry)
    }

    /// Makes ended items wait again with their batch.
    pub(in crate::sqlite::verbs) fn retry_items(
        &mut self,
        batch: TaskId,
        items: Vec<(TaskId, EndedTask)>,
    ) -> Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        self.connection
            .prepare_cached("UPDATE unpropagated_end SET next_item = ? WHERE task = ?")?
            .execute([i64::MAX, batch.0])?;
        for (item, ended) in items {
            self.take_key_again(item, &ended)?;
            self.revive(item, &ended)?;
        }
        Ok(())
    }

    /// Removes an item that is retried alone from its batch, and adds it to a pending batch.
    pub(in crate::sqlite::verbs) fn add_to_batch_again(&mut self, item: TaskId, ended: &EndedTask) -> Result<()> {
        let Some(aggregate) = ended.options.aggregate else { return Ok(()) };
        self.forget_batch_of(item)?;
        let bytes: i64 = self
            .connection
            .prepare_cached("SELECT length(payload) FROM task WHERE id = ?")?
            .query_row([item.0], |row| row.get(0))?;
        self.add_to_batch(item, ended.sub_queue, aggregate, bytes.cast_unsigned())
    }
}
