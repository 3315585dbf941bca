//! Ready lists of tasks that have an affinity key.
//!
//! A list can be **reserved** for the session that its key prefers. The first task of an unreserved
//! list is in the [head list](crate::sqlite::ready::claimable_heads) of its queue and kind, from
//! which every session claims. The first task of a reserved list is in a head list of its session.
//! So a claim examines no list that is reserved for another session, however many there are.
//!
//! A reservation changes when a task enters or leaves the list, when a task of the key starts, when
//! a session ends, and with time. A write only marks the key as changed.
//! [`refresh_affinity_lists`](Transaction::refresh_affinity_lists) computes the reservations at the
//! end of the write, so that a claim does not see its own changes.
//! see its own changes.

use rusqlite::{OptionalExtension, params};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::task::SessionId;
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules;
use crate::rules::order::SortKey;
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::{
    AFFINITY_SHIFT, FIRST_GROUPED, FIRST_WITH_AFFINITY, HAS_AFFINITY, Names, sub_queue_of_list,
};
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::ready::affinity_keys::{number_of, preferred};
use crate::sqlite::ready::claimable_heads::ClaimableHead;
use crate::sqlite::ready::index::Entry;

/// A list, the session for which it is reserved, and the end of the reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AffinityList {
    list: i64,
    reserved: Option<(i64, i64)>,
}

impl AffinityList {
    /// Reads a row of the table `affinity_list`.
    fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let (session, until): (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
        Ok(Self { list: row.get(0)?, reserved: session.zip(until) })
    }

    /// Returns the head list that has the list's first task: the common one, or that of the session
    /// for which the list is reserved.
    fn head_list(&self, names: &Names) -> i64 {
        reserved_head_list(names.ungrouped_of(self.list), self.reserved.map_or(0, |(session, _)| session))
    }
}

/// Returns the number of the head list of a session that corresponds to a common head list. Session
/// 0 stands for the common list itself.
pub(in crate::sqlite) fn reserved_head_list(head_list: i64, session: i64) -> i64 {
    session << AFFINITY_SHIFT | head_list
}

/// Reads a list's row. A list without a row is not reserved.
fn read(connection: &Database<'_>, list: i64) -> Result<AffinityList> {
    let mut statement = connection.prepare_cached("SELECT list, session, until FROM affinity_list WHERE list = ?")?;
    let found = statement.query_row([list], AffinityList::from_row).optional()?;
    Ok(found.unwrap_or(AffinityList { list, reserved: None }))
}

/// Returns the head list of a ready list of any kind.
pub(in crate::sqlite) fn head_list_of(connection: &Database<'_>, names: &Names, list: i64) -> Result<i64> {
    if list < FIRST_WITH_AFFINITY {
        return Ok(names.ungrouped_of(list));
    }
    Ok(read(connection, list)?.head_list(names))
}

impl Cache {
    /// Returns the ready list of a task in a sub-queue: the list of its affinity key, if the table
    /// has the key.
    pub(in crate::sqlite) fn list_of(
        &self,
        connection: &Database<'_>,
        sub_queue: i64,
        affinity_key: Option<&Name>,
    ) -> Result<i64> {
        let Some(affinity_key) = affinity_key else { return Ok(sub_queue) };
        Ok(number_of(connection, affinity_key)?.map_or(sub_queue, |number| number << AFFINITY_SHIFT | sub_queue))
    }

    /// Returns the session for which a list is to be reserved at `now`, and the end of the
    /// reservation.
    pub(in crate::sqlite) fn reservation(
        &mut self,
        connection: &Database<'_>,
        list: i64,
        now: Timestamp,
    ) -> Result<Option<(SessionId, Timestamp)>> {
        if list < FIRST_WITH_AFFINITY {
            return Ok(None);
        }
        let Some(session) = preferred(connection, list >> AFFINITY_SHIFT)? else { return Ok(None) };
        let queue = self.names.sub_queue(list).map_or(0, |sub_queue| sub_queue.queue);
        let wait = self.queues.settings(queue).affinity_wait;
        let Some(first) = self.index.first_ready(connection, list)?.filter(|_| !wait.is_zero()) else {
            return Ok(None);
        };
        let mut statement = connection.prepare_cached("SELECT run_at FROM task WHERE id = ?")?;
        let run_at = statement.query_row([first.task.0], |row| row.get(0))?;
        let until = rules::affinity::reserved_until(Timestamp::from_microseconds(run_at), wait);
        Ok((now < until).then_some((SessionId(session), until)))
    }
}

impl Transaction<'_> {
    /// Adds a task with an affinity key to its list, or to `scheduled` if it is not due. An empty
    /// list gets its reservation with its first task, from whose due time it counts.
    pub(in crate::sqlite) fn enter_affinity_list(&mut self, entry: &Entry<'_>, affinity_key: &Name) -> Result<()> {
        if !entry.is_ready() {
            let list = if entry.scheduled { entry.list | HAS_AFFINITY } else { entry.list };
            return self.cache.index.add(self.connection, &Entry { list, ..entry.clone() });
        }
        let list = self.ensure_affinity_key(affinity_key)? << AFFINITY_SHIFT | entry.list;
        let first = self.cache.index.first_ready(self.connection, list)?;
        self.cache.index.add(self.connection, &Entry { list, ..entry.clone() })?;
        self.note_entry_to_affinity_list(list, entry.sort_key(), first)
    }

    /// Moves a task that became due to the list of its affinity key.
    pub(super) fn enter_affinity_list_when_due(&mut self, list: i64, sort_key: SortKey) -> Result<()> {
        let affinity_key = self.live(sort_key.task)?.and_then(|task| task.options.affinity);
        let affinity_key =
            affinity_key.ok_or_else(|| Error::corrupt("a task has lost its affinity key; restore a backup"))?;
        let list = self.ensure_affinity_key(&affinity_key)? << AFFINITY_SHIFT | list;
        let first = self.cache.index.first_ready(self.connection, list)?;
        self.cache.index.add_ready(self.connection, list, sort_key)?;
        self.note_entry_to_affinity_list(list, sort_key, first)
    }

    /// Removes a task from its list, and the list's row after its last task.
    pub(super) fn leave_affinity_list(&mut self, entry: &Entry<'_>, affinity_key: &Name) -> Result<()> {
        let list = self.cache.list_of(self.connection, entry.list, Some(affinity_key))?;
        self.cache.index.remove(self.connection, &Entry { list, ..entry.clone() })?;
        self.note_exit_from_affinity_list(list, entry.sort_key())?;
        self.refresh_group_of(list)
    }

    /// Updates the reservation and the head list after a task has entered, if it is the list's
    /// first task now. `first` is the first task before.
    fn note_entry_to_affinity_list(&mut self, list: i64, sort_key: SortKey, first: Option<SortKey>) -> Result<()> {
        if first.is_none() {
            self.connection
                .prepare_cached("INSERT INTO affinity_list (list, sub_queue) VALUES (?, ?)")?
                .execute([list, sub_queue_of_list(list)])?;
        }
        let group = self.cache.names.group_of(list);
        if let Some(group) = group
            && self.cache.limits.group(self.connection, group)?.blocked
        {
            return self.refresh_group(group);
        }
        if first.is_some_and(|first| first < sort_key) {
            return Ok(());
        }
        let (head_list, share_tag) =
            (head_list_of(self.connection, &self.cache.names, list)?, self.share_tag_of(list)?);
        if let Some(first) = first {
            self.cache.heads.remove(self.connection, head_list, ClaimableHead { share_tag, sort_key: first, list })?;
        }
        self.cache.heads.insert(self.connection, head_list, ClaimableHead { share_tag, sort_key, list })?;
        self.cache.affinity.changed.insert(list >> AFFINITY_SHIFT);
        let group = group.filter(|_| self.cache.limits.fair_shares.are_shared());
        group.map_or(Ok(()), |group| self.refresh_minimum(group))
    }

    /// Updates the head of a list after a task has left it.
    pub(super) fn note_exit_from_affinity_list(&mut self, list: i64, sort_key: SortKey) -> Result<()> {
        let (head_list, share_tag) =
            (head_list_of(self.connection, &self.cache.names, list)?, self.share_tag_of(list)?);
        let was_head =
            self.cache.heads.remove(self.connection, head_list, ClaimableHead { share_tag, sort_key, list })?;
        match self.cache.index.first_ready(self.connection, list)? {
            None => {
                self.connection.prepare_cached("DELETE FROM affinity_list WHERE list = ?")?.execute([list])?;
                self.cache.affinity.next_release = None;
            }
            Some(sort_key) if was_head => {
                self.cache.heads.insert(self.connection, head_list, ClaimableHead { share_tag, sort_key, list })?;
            }
            Some(_) => {}
        }
        self.cache.affinity.changed.insert(list >> AFFINITY_SHIFT);
        Ok(())
    }

    /// Returns the lists of affinity keys of a group.
    pub(in crate::sqlite) fn affinity_lists_of_group(&self, group: i64) -> Result<Vec<i64>> {
        let mut lists = Vec::new();
        if !self.cache.affinity.any() {
            return Ok(lists);
        }
        let mut statement = self.connection.prepare_cached("SELECT list FROM affinity_list WHERE sub_queue = ?")?;
        for sub_queue in self.cache.names.sub_queues_of_group(group) {
            for list in statement.query_map([sub_queue], |row| row.get(0))? {
                lists.push(list?);
            }
        }
        Ok(lists)
    }

    /// Returns the lists of affinity keys without a group in a queue.
    pub(super) fn affinity_lists_of_queue(&self, queue: i64) -> Result<Vec<i64>> {
        let mut lists = Vec::new();
        if !self.cache.affinity.any() {
            return Ok(lists);
        }
        let mut statement = self.connection.prepare_cached("SELECT list FROM affinity_list WHERE sub_queue < ?")?;
        for list in statement.query_map([FIRST_GROUPED], |row| row.get(0))? {
            let list = list?;
            if self.cache.names.sub_queue(list).is_some_and(|sub_queue| sub_queue.queue == queue) {
                lists.push(list);
            }
        }
        Ok(lists)
    }

    /// Returns true if a list in the same queue and kind as one of these is reserved for any
    /// session.
    pub(in crate::sqlite) fn any_reserved(&self, sub_queues: &[i64]) -> Result<bool> {
        if !self.cache.affinity.any() {
            return Ok(false);
        }
        let mut statement =
            self.connection.prepare_cached("SELECT list FROM affinity_list WHERE until IS NOT NULL ORDER BY until")?;
        for list in statement.query_map([], |row| row.get(0))? {
            if sub_queues.contains(&self.cache.names.ungrouped_of(list?)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes the heads of a group's lists when the group is blocked, or restores them.
    pub(in crate::sqlite) fn move_affinity_heads(&mut self, group: i64, blocked: bool) -> Result<()> {
        for list in self.affinity_lists_of_group(group)? {
            let Some(sort_key) = self.cache.index.first_ready(self.connection, list)? else { continue };
            let known = read(self.connection, list)?;
            let head = ClaimableHead { share_tag: self.share_tag_of(list)?, sort_key, list };
            if blocked {
                self.cache.heads.remove(self.connection, known.head_list(&self.cache.names), head)?;
                self.reserve(known, None)?;
            } else {
                self.cache.heads.insert(self.connection, known.head_list(&self.cache.names), head)?;
                self.cache.affinity.changed.insert(list >> AFFINITY_SHIFT);
                self.hint.work += 1;
            }
        }
        Ok(())
    }

    /// Writes a changed reservation.
    fn reserve(&mut self, known: AffinityList, reserved: Option<(i64, i64)>) -> Result<()> {
        if known.reserved == reserved {
            return Ok(());
        }
        let (session, until) = reserved.unzip();
        let before = self.next_release_at()?;
        self.connection
            .prepare_cached("UPDATE affinity_list SET session = ?, until = ? WHERE list = ?")?
            .execute(params![session, until, known.list])?;
        // The engine sleeps until the next reservation ends, so an earlier end must wake it.
        let is_next = until.is_some_and(|until| before.is_none_or(|next| until < next));
        self.hint.work += u64::from(is_next);
        self.cache.affinity.next_release = None;
        Ok(())
    }

    /// Ends the reservations whose time is over. Checks every list if the clock was set back, or if
    /// no process has checked yet.
    pub(in crate::sqlite) fn release_reservations(&mut self) -> Result<()> {
        if !self.cache.affinity.any() {
            return Ok(());
        }
        let now = self.now.as_microseconds();
        let is_set_back = now < self.cache.affinity.released_at;
        if self.cache.affinity.looked_at.replace(now).is_none_or(|before| now < before) || is_set_back {
            self.note_release(now)?;
            self.mark_changed("SELECT list FROM affinity_list WHERE list > ?", [0])?;
        } else if self.next_release_at()?.is_some_and(|next| next <= now) {
            let sql = "SELECT list FROM affinity_list WHERE until <= ? ORDER BY until LIMIT ?";
            self.mark_changed(sql, [now, bounds::SWEEP.cast_signed() as i64])?;
        }
        self.refresh_affinity_lists()
    }

    /// Records the time up to which reservations have ended, so that a restart neither repeats nor
    /// omits one.
    fn note_release(&mut self, now: i64) -> Result<()> {
        self.cache.affinity.released_at = now;
        self.connection
            .prepare_cached("UPDATE meta SET value = ? WHERE name = 'reservations_released_at'")?
            .execute([now])?;
        Ok(())
    }

    /// Returns the lists whose reservation is over but not yet ended by a sweep.
    pub(in crate::sqlite) fn expired_reservations(&self) -> Result<Vec<i64>> {
        if !self.cache.affinity.any() {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare_cached("SELECT list FROM affinity_list WHERE until <= ?")?;
        let lists = statement.query_map([self.now.as_microseconds()], |row| row.get(0))?;
        Ok(lists.collect::<rusqlite::Result<_>>()?)
    }

    /// Marks the affinity keys of the selected lists; the end of the write refreshes them.
    fn mark_changed(&mut self, sql: &'static str, values: impl rusqlite::Params) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql)?;
        for list in statement.query_map(values, |row| row.get::<_, i64>(0))? {
            self.cache.affinity.changed.insert(list? >> AFFINITY_SHIFT);
        }
        Ok(())
    }

    /// Marks the affinity keys of every list of a queue.
    pub(in crate::sqlite) fn mark_queue_changed(&mut self, queue: i64) -> Result<()> {
        if !self.cache.affinity.any() {
            return Ok(());
        }
        let mut statement = self.connection.prepare_cached("SELECT list FROM affinity_list")?;
        for list in statement.query_map([], |row| row.get(0))? {
            let list = list?;
            if self.cache.names.sub_queue(list).is_some_and(|sub_queue| sub_queue.queue == queue) {
                self.cache.affinity.changed.insert(list >> AFFINITY_SHIFT);
            }
        }
        Ok(())
    }

    /// Reserves the lists of changed affinity keys for the sessions that the keys prefer now.
    pub(in crate::sqlite) fn refresh_affinity_lists(&mut self) -> Result<()> {
        while let Some(affinity_key) = self.cache.affinity.changed.pop_first() {
            let range = [affinity_key << AFFINITY_SHIFT, (affinity_key + 1) << AFFINITY_SHIFT];
            let sql = "SELECT list, session, until FROM affinity_list WHERE list >= ? AND list < ?";
            let mut statement = self.connection.prepare_cached(sql)?;
            let lists = statement.query_map(range, AffinityList::from_row)?.collect::<rusqlite::Result<Vec<_>>>()?;
            if lists.is_empty() {
                self.connection
                    .prepare_cached("DELETE FROM affinity WHERE id = ? AND session IS NULL")?
                    .execute([affinity_key])?;
            }
            lists.into_iter().try_for_each(|list| self.refresh_affinity_list(list))?;
        }
        Ok(())
    }

    /// Computes a list's reservation again. Skips a list whose group is at its limit: it has no
    /// head until the group has room, and is marked then.
    fn refresh_affinity_list(&mut self, known: AffinityList) -> Result<()> {
        if let Some(group) = self.cache.names.group_of(known.list)
            && self.cache.limits.group(self.connection, group)?.blocked
        {
            return Ok(());
        }
        let reserved = self.cache.reservation(self.connection, known.list, self.now)?;
        let now = self.now.as_microseconds();
        if reserved.is_none() && now > self.cache.affinity.released_at {
            self.note_release(now)?;
        }
        let reserved = reserved.map(|(session, until)| (session.0, until.as_microseconds()));
        let after = AffinityList { reserved, ..known };
        let (from, to) = (known.head_list(&self.cache.names), after.head_list(&self.cache.names));
        if from != to
            && let Some(sort_key) = self.cache.index.first_ready(self.connection, known.list)?
        {
            let head = ClaimableHead { share_tag: self.share_tag_of(known.list)?, sort_key, list: known.list };
            self.cache.heads.remove(self.connection, from, head)?;
            self.cache.heads.insert(self.connection, to, head)?;
            self.hint.work += 1;
        }
        self.reserve(known, reserved)
    }
}
