//! Ready lists of groups: how tasks enter and leave them, and how their claimable heads follow.

use crate::api::error::Result;
use crate::api::task::SessionId;
use crate::rules::order::SortKey;
use crate::sqlite::commit::names::{AFFINITY_SHIFT, FIRST_GROUPED, FIRST_WITH_AFFINITY, HAS_AFFINITY};
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::ready::claimable_heads::ClaimableHead;
use crate::sqlite::ready::index::Entry;

impl Transaction<'_> {
    /// Adds a task that no session holds to its list. The caller takes its key.
    pub(in crate::sqlite) fn enter_list(&mut self, entry: &Entry<'_>) -> Result<()> {
        if let Some(affinity_key) = entry.affinity_key {
            return self.enter_affinity_list(entry, affinity_key);
        }
        if entry.list < FIRST_GROUPED || !entry.is_ready() {
            return self.cache.index.add(self.connection, entry);
        }
        let first = self.cache.index.first_ready(self.connection, entry.list)?;
        self.cache.index.add(self.connection, entry)?;
        self.note_entry(entry.list, entry.sort_key(), first)
    }

    /// Adds a task that has become due to its list. `list` is its list in `scheduled`.
    pub(in crate::sqlite) fn enter_list_when_due(&mut self, list: i64, sort_key: SortKey) -> Result<()> {
        if list < FIRST_GROUPED {
            return self.cache.index.add_ready(self.connection, list, sort_key);
        }
        if list & HAS_AFFINITY != 0 {
            return self.enter_affinity_list_when_due(list & !HAS_AFFINITY, sort_key);
        }
        let first = self.cache.index.first_ready(self.connection, list)?;
        self.cache.index.add_ready(self.connection, list, sort_key)?;
        self.note_entry(list, sort_key, first)
    }

    /// Removes a task that no session holds from its list. The caller frees its key.
    pub(in crate::sqlite) fn leave_list(&mut self, entry: &Entry<'_>) -> Result<()> {
        if let Some(affinity_key) = entry.affinity_key.filter(|_| entry.is_ready()) {
            return self.leave_affinity_list(entry, affinity_key);
        }
        self.cache.index.remove(self.connection, entry)?;
        if entry.list < FIRST_GROUPED || !entry.is_ready() {
            return Ok(());
        }
        self.note_exit(entry.list, entry.sort_key())?;
        self.refresh_group_of(entry.list)
    }

    /// Removes a task from a list of a group or an affinity key because a session is about to start
    /// it, and counts the start. Returns true if the group is at its limit now. The task's cached
    /// row stays, because the start needs it.
    pub(in crate::sqlite) fn start_from_list(
        &mut self,
        session: SessionId,
        list: i64,
        sort_key: SortKey,
    ) -> Result<bool> {
        self.cache.index.remove_ready_to_start(self.connection, list, sort_key)?;
        if list >= FIRST_WITH_AFFINITY {
            self.prefer(list >> AFFINITY_SHIFT, session)?;
        }
        self.note_exit(list, sort_key)?;
        if self.cache.limits.fair_shares.are_shared() {
            self.charge(list)?;
        }
        let Some(group) = self.cache.names.group_of(list) else { return Ok(false) };
        self.cache.limits.start_in_group(self.connection, group, self.steady_time())?;
        self.refresh_group(group)?;
        Ok(self.cache.limits.group(self.connection, group)?.blocked)
    }

    /// Updates the heads after a task has entered a list. Nothing changes unless it is the first
    /// task now, and its group is not at its limit.
    fn note_entry(&mut self, list: i64, sort_key: SortKey, first: Option<SortKey>) -> Result<()> {
        let Some(group) = self.cache.names.group_of(list) else { return Ok(()) };
        if self.cache.limits.group(self.connection, group)?.blocked {
            return self.refresh_group(group);
        }
        if first.is_some_and(|first| first < sort_key) {
            return Ok(());
        }
        let (head_list, share_tag) = (self.cache.names.ungrouped_of(list), self.share_tag_of(list)?);
        if let Some(first) = first {
            self.cache.heads.remove(self.connection, head_list, ClaimableHead { share_tag, sort_key: first, list })?;
        }
        self.cache.heads.insert(self.connection, head_list, ClaimableHead { share_tag, sort_key, list })?;
        // A new group may be below its minimum from the start.
        if self.cache.limits.fair_shares.are_shared() { self.refresh_minimum(group) } else { Ok(()) }
    }

    /// Updates the head of a list after its first task has left.
    fn note_exit(&mut self, list: i64, sort_key: SortKey) -> Result<()> {
        if list >= FIRST_WITH_AFFINITY {
            return self.note_exit_from_affinity_list(list, sort_key);
        }
        let (head_list, share_tag) = (self.cache.names.ungrouped_of(list), self.share_tag_of(list)?);
        if self.cache.heads.remove(self.connection, head_list, ClaimableHead { share_tag, sort_key, list })?
            && let Some(sort_key) = self.cache.index.first_ready(self.connection, list)?
        {
            self.cache.heads.insert(self.connection, head_list, ClaimableHead { share_tag, sort_key, list })?;
        }
        Ok(())
    }
}
