//! Tasks that are collected, and bundles of them.

use std::num::NonZeroU32;

use rusqlite::{OptionalExtension, Row, params};

use crate::api::aggregate::Aggregate;
use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::outcome::Refusal;
use crate::api::task::{NewTask, Priority, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::aggregate::{self, Collection, MemberFacts};
use crate::rules::dependencies::Ended;
use crate::sqlite::columns::links::BUNDLE;
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::cache::next_ripe;
use crate::sqlite::commit::transaction::{LiveTask, Transaction, Verb};
use crate::sqlite::verbs::tasks::control::EndedTask;

/// Whether a live task is collected with others, or was handed over with them.
pub(in crate::sqlite) fn is_member(task: &LiveTask) -> bool {
    task.blocked && task.options.aggregate.is_some()
}

fn collection_of(row: &Row<'_>) -> rusqlite::Result<Collection> {
    let moment = |index| Ok::<_, rusqlite::Error>(Timestamp::from_microseconds(row.get(index)?));
    Ok(Collection {
        began_with: TaskId(row.get(0)?),
        members: row.get(1)?,
        bytes: row.get::<_, i64>(2)?.cast_unsigned(),
        began_at: moment(3)?,
        size: row.get(4)?,
        deadline: moment(5)?,
        ripe_at: moment(6)?,
    })
}

impl Transaction<'_> {
    /// Has a task that was just inserted join those of its sub-queue, unless it has ended already.
    pub(in crate::sqlite) fn collect_new(
        &mut self,
        id: TaskId,
        sub_queue: i64,
        aggregate: Aggregate,
        new: &NewTask,
    ) -> Result<()> {
        if new.parent.is_some() && !self.is_live(id)? {
            return Ok(());
        }
        self.collect(id, sub_queue, aggregate, new.payload.len() as u64)
    }

    /// Has a task that is to be collected join those of a sub-queue.
    pub(in crate::sqlite) fn collect(
        &mut self,
        id: TaskId,
        sub_queue: i64,
        aggregate: Aggregate,
        bytes: u64,
    ) -> Result<()> {
        let mut before = self.collection(sub_queue)?;
        if before.is_some_and(|collection| !collection.has_room_for(bytes)) {
            self.hand_over(sub_queue)?;
            before = None;
        }
        let collection = Collection::joined(before, id, aggregate, bytes, self.now);
        self.connection
            .prepare_cached("INSERT INTO member (sub_queue, task, bytes) VALUES (?, ?, ?)")?
            .execute(params![sub_queue, id.0, bytes.cast_signed()])?;
        self.put_collection(sub_queue, &collection)?;
        if collection.is_full() {
            self.hand_over(sub_queue)?;
        }
        self.cache.next_ripe = next_ripe(self.connection)?;
        Ok(())
    }

    fn collection(&self, sub_queue: i64) -> Result<Option<Collection>> {
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/relations/pending_batch.sql"))?;
        Ok(statement.query_row([sub_queue], collection_of).optional()?)
    }

    fn put_collection(&self, sub_queue: i64, collection: &Collection) -> Result<()> {
        let Collection { began_with, members, bytes, began_at, size, deadline, ripe_at } = *collection;
        self.connection.prepare_cached(include_str!("../../sql/relations/put_pending_batch.sql"))?.execute(params![
            sub_queue,
            began_with.0,
            members,
            bytes.cast_signed(),
            began_at.as_microseconds(),
            size,
            deadline.as_microseconds(),
            ripe_at.as_microseconds()
        ])?;
        Ok(())
    }

    /// Makes a bundle of what is collected in a sub-queue; answers how many members it has.
    fn hand_over(&mut self, sub_queue: i64) -> Result<usize> {
        let members = self.collected(sub_queue)?;
        let facts: Vec<MemberFacts> = members.iter().map(|(_, facts)| *facts).collect();
        let count = u32::try_from(members.len()).ok().and_then(NonZeroU32::new);
        let Some((count, names)) = count.zip(self.cache.names.sub_queue(sub_queue)) else { return Ok(0) };
        let mut new = NewTask::of(names.kind_name.clone());
        (new.queue, new.group) = (names.queue_name.clone(), names.group_name.clone());
        aggregate::adopt(&mut new, &facts);
        let bundle = self.insert_with(&new, TaskOptions { members: Some(count), ..TaskOptions::of(&new) })?;
        self.note_bundle(bundle)?;
        self.connection
            .prepare_cached("INSERT INTO member_of (task, bundle) SELECT task, ? FROM member WHERE sub_queue = ?")?
            .execute([bundle.0, sub_queue])?;
        self.connection.prepare_cached("DELETE FROM member WHERE sub_queue = ?")?.execute([sub_queue])?;
        self.connection.prepare_cached("DELETE FROM collecting WHERE sub_queue = ?")?.execute([sub_queue])?;
        for (member, _) in &members {
            self.log(*member, sub_queue, Change::Bundled { bundle });
        }
        Ok(members.len())
    }

    /// What is collected in a sub-queue, the oldest first.
    fn collected(&self, sub_queue: i64) -> Result<Vec<(TaskId, MemberFacts)>> {
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/relations/pending_items.sql"))?;
        let members = statement.query_map([sub_queue], |row| {
            let TaskOptions { timeout, heartbeat_timeout, retention, retry, expected_io: io, .. } = row.get(2)?;
            let priority = Priority(row.get(1)?);
            Ok((TaskId(row.get(0)?), MemberFacts { priority, timeout, heartbeat_timeout, retention, retry, io }))
        })?;
        Ok(members.collect::<rusqlite::Result<_>>()?)
    }

    /// Hands over what it is time for, the longest overdue first; answers how many bundles.
    pub(in crate::sqlite) fn hand_over_ripe(&mut self) -> Result<u64> {
        let now = self.now.as_microseconds();
        if self.cache.next_ripe.is_none_or(|at| at > now) {
            return Ok(0);
        }
        let (mut bundles, mut members) = (0, 0);
        for sub_queue in self.sub_queues_with_ready_batch(now)? {
            if members >= bounds::SWEEP {
                break;
            }
            members += self.hand_over(sub_queue)?;
            bundles += 1;
        }
        self.cache.next_ripe = next_ripe(self.connection)?;
        Ok(bundles)
    }

    fn sub_queues_with_ready_batch(&self, now: i64) -> Result<Vec<i64>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT sub_queue FROM collecting WHERE ripe_at <= ? ORDER BY ripe_at, began_with LIMIT ?",
        )?;
        let sub_queues = statement.query_map(params![now, bounds::SWEEP.cast_signed()], |row| row.get(0))?;
        Ok(sub_queues.collect::<rusqlite::Result<_>>()?)
    }

    /// Takes a task out of what is collected in its sub-queue; answers how many bytes its payload has,
    /// if it was there.
    pub(in crate::sqlite) fn leave_collection(&mut self, task: &LiveTask) -> Result<Option<u64>> {
        let bytes: Option<i64> = self
            .connection
            .prepare_cached("DELETE FROM member WHERE sub_queue = ? AND task = ? RETURNING bytes")?
            .query_row([task.sub_queue, task.id.0], |row| row.get(0))
            .optional()?;
        let Some(bytes) = bytes.map(i64::cast_unsigned) else { return Ok(None) };
        match self.collection(task.sub_queue)?.and_then(|collection| collection.left(bytes)) {
            Some(left) => self.put_collection(task.sub_queue, &left)?,
            None => {
                self.connection
                    .prepare_cached("DELETE FROM collecting WHERE sub_queue = ?")?
                    .execute([task.sub_queue])?;
            }
        }
        self.cache.next_ripe = next_ripe(self.connection)?;
        Ok(Some(bytes))
    }

    /// A task that was to be collected has ended or was removed: it leaves what is being collected,
    /// or its bundle, unless it ended with that.
    pub(in crate::sqlite) fn leave_bundle(&mut self, task: &LiveTask, is_removed: bool) -> Result<()> {
        let Some(bundle) = self.bundle_of(task.id)? else { return self.leave_collection(task).map(drop) };
        let live = self.live(bundle)?;
        if live.is_some() || is_removed {
            self.forget_bundle_of(task.id)?;
        }
        if let Some(live) = live.filter(|live| live.held.is_none())
            && self.next_member(bundle, 0)?.is_none()
        {
            self.record_error(&live, live.attempts, aggregate::EMPTIED)?;
            self.end_unheld(&live, TaskState::Cancelled)?;
        }
        Ok(())
    }

    fn bundle_of(&self, member: TaskId) -> Result<Option<TaskId>> {
        let mut statement = self.connection.prepare_cached("SELECT bundle FROM member_of WHERE task = ?")?;
        Ok(statement.query_row([member.0], |row| row.get(0).map(TaskId)).optional()?)
    }

    /// A task is a member of its bundle no more.
    pub(in crate::sqlite) fn forget_bundle_of(&self, member: TaskId) -> Result<()> {
        self.connection.prepare_cached("DELETE FROM member_of WHERE task = ?")?.execute([member.0])?;
        Ok(())
    }

    /// The first member of a bundle from a number on.
    fn next_member(&self, bundle: TaskId, from: i64) -> Result<Option<TaskId>> {
        let mut statement =
            self.connection.prepare_cached("SELECT min(task) FROM member_of WHERE bundle = ? AND task >= ?")?;
        Ok(statement.query_row([bundle.0, from], |row| row.get::<_, Option<i64>>(0))?.map(TaskId))
    }

    /// The bundle of a live task, if it is a member of one that has not ended.
    pub(in crate::sqlite) fn live_bundle_of(&self, task: &LiveTask) -> Result<Option<LiveTask>> {
        let bundle = if is_member(task) { self.bundle_of(task.id)? } else { None };
        bundle.map_or(Ok(None), |bundle| self.live(bundle))
    }

    /// Where a live task stands; a member runs while its bundle does.
    pub(in crate::sqlite) fn standing_of(&self, task: &LiveTask) -> Result<TaskState> {
        let runs = self.live_bundle_of(task)?.is_some_and(|bundle| bundle.held.is_some());
        Ok(if runs { TaskState::Running } else { task.state() })
    }

    fn marked(&self, bundle: &LiveTask) -> Result<Vec<TaskId>> {
        if bundle.links & BUNDLE == 0 {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/relations/items_to_cancel.sql"))?;
        let marked = statement.query_map([bundle.id.0], |row| row.get(0).map(TaskId))?;
        Ok(marked.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether somebody wants members of a bundle cancelled.
    pub(in crate::sqlite) fn has_marked(&self, bundle: &LiveTask) -> Result<bool> {
        Ok(!self.marked(bundle)?.is_empty())
    }

    /// A task waits again. If it is a bundle, members that somebody wanted cancelled while it ran
    /// are taken out of it. Answers where it stands.
    pub(in crate::sqlite) fn let_go(&mut self, task: &LiveTask) -> Result<TaskState> {
        let marked = self.marked(task)?;
        if marked.is_empty() {
            return Ok(task.state());
        }
        for member in marked {
            if let Some(live) = self.live(member)? {
                self.end_unheld(&live, TaskState::Cancelled)?;
            }
        }
        Ok(self.live(task.id)?.map_or(TaskState::Cancelled, |live| live.state()))
    }

    /// Whether the time to live of a task is over for good, for it is a member of a bundle that has
    /// started; then it is forgotten.
    pub(in crate::sqlite) fn outlives(&mut self, task: &LiveTask) -> Result<bool> {
        let bundle = self.live_bundle_of(task)?;
        if !bundle.is_some_and(|bundle| aggregate::has_started(bundle.state(), bundle.attempts)) {
            return Ok(false);
        }
        if let Some(at) = task.expires_at {
            self.cache.index.remove_expiry(self.connection, at, task.id.0)?;
        }
        self.connection.prepare_cached("UPDATE task SET expires_at = NULL WHERE id = ?")?.execute([task.id.0])?;
        Ok(true)
    }

    /// Ends the next member of a bundle that is over, from a number on; answers where to go on, if
    /// some may be left.
    pub(in crate::sqlite) fn end_next_member(
        &mut self,
        bundle: TaskId,
        ended: Ended,
        from: i64,
    ) -> Result<Option<i64>> {
        let Some(member) = self.next_member(bundle, from)? else {
            self.connection.prepare_cached("DELETE FROM bundle WHERE task = ?")?.execute([bundle.0])?;
            return Ok(None);
        };
        if let Some(live) = self.live(member)? {
            self.end_member(&live, bundle, ended)?;
        }
        Ok(Some(member.0 + 1))
    }

    /// Notes that a task is a bundle whose members have not all ended.
    pub(in crate::sqlite) fn note_bundle(&mut self, task: TaskId) -> Result<()> {
        self.add_link(task, BUNDLE)?;
        self.connection.prepare_cached("INSERT OR IGNORE INTO bundle (task) VALUES (?)")?.execute([task.0])?;
        Ok(())
    }

    fn end_member(&mut self, member: &LiveTask, bundle: TaskId, ended: Ended) -> Result<()> {
        let state = aggregate::end_of_member(ended);
        if state == TaskState::Completed {
            self.count_completed(member.sub_queue, member.attempts, member.run_at, self.now.as_microseconds());
        } else if let Some(error) = aggregate::error(bundle, ended, self.last_error(bundle)?.as_deref()) {
            self.record_error(member, member.attempts, &error)?;
        }
        self.end_unheld(member, state)
    }

    pub(in crate::sqlite) fn last_error(&self, task: TaskId) -> Result<Option<String>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT message FROM attempt_error WHERE task = ? ORDER BY number DESC LIMIT 1")?;
        Ok(statement.query_row([task.0], |row| row.get(0)).optional()?)
    }

    /// The members that wait again with a bundle that is tried again after its end: those that have
    /// ended.
    pub(in crate::sqlite) fn members_to_retry(
        &self,
        bundle: TaskId,
        ended: &EndedTask,
    ) -> Verb<Vec<(TaskId, EndedTask)>> {
        if ended.options.members.is_none() {
            return Ok(Vec::new());
        }
        let mut statement =
            self.connection.prepare_cached("SELECT task FROM member_of WHERE bundle = ? ORDER BY task")?;
        let members = statement.query_map([bundle.0], |row| row.get(0).map(TaskId))?;
        let members: Vec<TaskId> = members.collect::<rusqlite::Result<_>>()?;
        if members.is_empty() {
            return Err(aggregate::without_members(bundle).into());
        }
        let mut to_retry = Vec::with_capacity(members.len());
        for member in members {
            let Some(ended) = self.ended(member)? else { continue };
            if let Some(by) = self.key_taken_by(&ended)? {
                return Err(Refusal::KeyTaken { task: member, by }.into());
            }
            to_retry.push((member, ended));
        }
        Ok(to_retry)
    }

    /// Has what ended with a bundle wait with it again.
    pub(in crate::sqlite) fn retry_members(&mut self, bundle: TaskId, members: Vec<(TaskId, EndedTask)>) -> Result<()> {
        if members.is_empty() {
            return Ok(());
        }
        self.connection
            .prepare_cached("UPDATE over SET next_member = ? WHERE task = ?")?
            .execute([i64::MAX, bundle.0])?;
        for (member, ended) in members {
            self.take_key_again(member, &ended)?;
            self.wait_anew(member, &ended)?;
        }
        Ok(())
    }

    /// Has a member that is tried again by itself leave its bundle and be collected again.
    pub(in crate::sqlite) fn collect_again(&mut self, member: TaskId, ended: &EndedTask) -> Result<()> {
        let Some(aggregate) = ended.options.aggregate else { return Ok(()) };
        self.forget_bundle_of(member)?;
        let bytes: i64 = self
            .connection
            .prepare_cached("SELECT length(payload) FROM task WHERE id = ?")?
            .query_row([member.0], |row| row.get(0))?;
        self.collect(member, ended.sub_queue, aggregate, bytes.cast_unsigned())
    }
}
