//! Claimable heads: the first due task of each ready list of a group or an affinity key, unless a
//! limit or a pause of the group stops the list.
//!
//! A list whose group is stopped has no head here, and gets one again when the group has room. So a
//! claim examines no such list, however many there are. A process that is alone has the heads in
//! memory; several processes have them in the tables.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension, Row, params};
use rustc_hash::FxHashMap;

use crate::api::error::Result;
use crate::api::task::TaskId;
use crate::bounds;
use crate::rules::order::SortKey;
use crate::rules::share::FairShareTag;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::FIRST_WITH_AFFINITY;

/// The first task of a list. The fair-share tag comes first in the order of heads; all tags are
/// equal if groups do not share their queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sqlite) struct ClaimableHead {
    /// The fair-share tag; the default if groups do not share.
    pub(in crate::sqlite) share_tag: FairShareTag,
    /// The sort key of the task.
    pub(in crate::sqlite) sort_key: SortKey,
    /// The list's number.
    pub(in crate::sqlite) list: i64,
}

impl ClaimableHead {
    /// Decodes a row.
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let sort_key = SortKey { at: row.get(1)?, task: TaskId(row.get(2)?) };
        Ok(Self { share_tag: FairShareTag(row.get(0)?), sort_key, list: row.get(3)? })
    }
}

/// The claimable heads by head list, and the times at which groups get their next token.
#[derive(Debug)]
pub(in crate::sqlite) enum ClaimableHeads {
    /// This process is alone: heads by head list; times, each with its group.
    Memory { heads: FxHashMap<i64, BTreeSet<ClaimableHead>>, tokens_due: BTreeSet<(i64, i64)> },
    /// Several processes share the file: both are in the tables.
    Tables,
}

impl Default for ClaimableHeads {
    fn default() -> Self {
        Self::Memory { heads: FxHashMap::default(), tokens_due: BTreeSet::new() }
    }
}

impl ClaimableHeads {
    /// Adds a head.
    pub(in crate::sqlite) fn insert(
        &mut self,
        connection: &Database<'_>,
        head_list: i64,
        head: ClaimableHead,
    ) -> Result<()> {
        match self {
            Self::Memory { heads, .. } => {
                heads.entry(head_list).or_default().insert(head);
            }
            Self::Tables => {
                connection
                    .prepare_cached(
                        "INSERT INTO claimable_head (head_list, share_tag, sort_key, task, list) VALUES (?, ?, ?, ?, ?)",
                    )?
                    .execute(params![head_list, head.share_tag.0, head.sort_key.at, head.sort_key.task.0, head.list])?;
            }
        }
        Ok(())
    }

    /// Removes a head. Returns true if it was there.
    pub(in crate::sqlite) fn remove(
        &mut self,
        connection: &Database<'_>,
        head_list: i64,
        head: ClaimableHead,
    ) -> Result<bool> {
        match self {
            Self::Memory { heads, .. } => Ok(heads.get_mut(&head_list).is_some_and(|heads| heads.remove(&head))),
            Self::Tables => {
                let removed = connection
                    .prepare_cached(
                        "DELETE FROM claimable_head WHERE head_list = ? AND share_tag = ? AND sort_key = ? AND task = ?",
                    )?
                    .execute(params![head_list, head.share_tag.0, head.sort_key.at, head.sort_key.task.0])?;
                Ok(removed > 0)
            }
        }
    }

    /// Returns the first of a head list's heads.
    pub(in crate::sqlite) fn first(&self, connection: &Database<'_>, head_list: i64) -> Result<Option<ClaimableHead>> {
        match self {
            Self::Memory { heads, .. } => Ok(heads.get(&head_list).and_then(|heads| heads.first().copied())),
            Self::Tables => Ok(connection
                .prepare_cached(
                    "SELECT share_tag, sort_key, task, list FROM claimable_head WHERE head_list = ? ORDER BY share_tag, sort_key, task LIMIT 1",
                )?
                .query_row([head_list], ClaimableHead::from_row)
                .optional()?),
        }
    }

    /// Returns the number of heads with a smaller fair-share tag in a head list, without those of
    /// affinity keys; at most [`bounds::AHEAD`].
    pub(in crate::sqlite) fn count_before(
        &self,
        connection: &Database<'_>,
        head_list: i64,
        share_tag: FairShareTag,
    ) -> Result<u64> {
        match self {
            Self::Memory { heads, .. } => {
                let before = heads.get(&head_list).into_iter().flatten().take_while(|head| head.share_tag < share_tag);
                let before = before.filter(|head| head.list < FIRST_WITH_AFFINITY);
                Ok((before.count() as u64).min(bounds::AHEAD))
            }
            Self::Tables => {
                let mut statement = connection.prepare_cached(include_str!("../sql/ready/count_heads_before.sql"))?;
                let count: i64 = statement.query_row(
                    params![head_list, share_tag.0, FIRST_WITH_AFFINITY, bounds::AHEAD.cast_signed()],
                    |row| row.get(0),
                )?;
                Ok(count.unsigned_abs())
            }
        }
    }

    /// Returns the heads of a head list up to and including the first for which `is_last` holds.
    pub(in crate::sqlite) fn up_to(
        &self,
        connection: &Database<'_>,
        head_list: i64,
        is_last: impl Fn(&ClaimableHead) -> bool,
    ) -> Result<Vec<ClaimableHead>> {
        let mut around = Vec::new();
        match self {
            Self::Memory { heads, .. } => {
                for head in heads.get(&head_list).into_iter().flatten() {
                    around.push(*head);
                    if is_last(head) {
                        break;
                    }
                }
            }
            Self::Tables => {
                let mut statement = connection.prepare_cached(
                    "SELECT share_tag, sort_key, task, list FROM claimable_head WHERE head_list = ? ORDER BY share_tag, sort_key, task",
                )?;
                for head in statement.query_map([head_list], ClaimableHead::from_row)? {
                    around.push(head?);
                    if around.last().is_some_and(&is_last) {
                        break;
                    }
                }
            }
        }
        Ok(around)
    }

    /// Adds the time of a group's next token.
    pub(in crate::sqlite) fn add_token_due(&mut self, connection: &Database<'_>, at: i64, group: i64) -> Result<()> {
        match self {
            Self::Memory { tokens_due, .. } => {
                tokens_due.insert((at, group));
            }
            Self::Tables => {
                connection
                    .prepare_cached("INSERT OR IGNORE INTO group_token_due (at, task_group) VALUES (?, ?)")?
                    .execute([at, group])?;
            }
        }
        Ok(())
    }

    /// Removes the time of a group's next token.
    pub(in crate::sqlite) fn remove_token_due(&mut self, connection: &Database<'_>, at: i64, group: i64) -> Result<()> {
        match self {
            Self::Memory { tokens_due, .. } => {
                tokens_due.remove(&(at, group));
            }
            Self::Tables => {
                connection
                    .prepare_cached("DELETE FROM group_token_due WHERE at = ? AND task_group = ?")?
                    .execute([at, group])?;
            }
        }
        Ok(())
    }

    /// Returns the times up to `now` at which groups get a token, each with its group; at most
    /// `limit`.
    pub(in crate::sqlite) fn tokens_due(
        &self,
        connection: &Database<'_>,
        now: i64,
        limit: usize,
    ) -> Result<Vec<(i64, i64)>> {
        match self {
            Self::Memory { tokens_due, .. } => Ok(tokens_due.range(..=(now, i64::MAX)).take(limit).copied().collect()),
            Self::Tables => {
                let mut statement = connection.prepare_cached(
                    "SELECT at, task_group FROM group_token_due WHERE at <= ? ORDER BY at, task_group LIMIT ?",
                )?;
                let rows =
                    statement.query_map(params![now, limit.cast_signed()], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            }
        }
    }

    /// Sets all fair-share tags to the default, so that sort keys alone order the heads.
    pub(in crate::sqlite) fn reset_share_tags(&mut self, connection: &Database<'_>) -> Result<()> {
        match self {
            Self::Memory { heads, .. } => {
                for heads in heads.values_mut() {
                    *heads = heads
                        .iter()
                        .map(|head| ClaimableHead { share_tag: FairShareTag::default(), ..*head })
                        .collect();
                }
            }
            Self::Tables => {
                connection
                    .prepare_cached("UPDATE claimable_head SET share_tag = 0 WHERE share_tag <> 0")?
                    .execute([])?;
            }
        }
        Ok(())
    }

    /// Moves everything to memory if `memory` is true, else to the tables.
    pub(in crate::sqlite) fn move_to(&mut self, connection: &Database<'_>, memory: bool) -> Result<()> {
        if memory { self.move_to_memory(connection) } else { self.move_to_tables(connection) }
    }

    /// Moves the heads to the tables, because another process has opened the file.
    fn move_to_tables(&mut self, connection: &Database<'_>) -> Result<()> {
        let Self::Memory { heads, tokens_due } = std::mem::replace(self, Self::Tables) else { return Ok(()) };
        for (head_list, heads) in heads {
            for head in heads {
                self.insert(connection, head_list, head)?;
            }
        }
        for (at, group) in tokens_due {
            self.add_token_due(connection, at, group)?;
        }
        Ok(())
    }

    /// Moves the heads to memory, because this process is alone again.
    fn move_to_memory(&mut self, connection: &Database<'_>) -> Result<()> {
        if matches!(self, Self::Memory { .. }) {
            return Ok(());
        }
        let mut heads = FxHashMap::<i64, BTreeSet<ClaimableHead>>::default();
        let mut statement =
            connection.prepare_cached("SELECT share_tag, sort_key, task, list, head_list FROM claimable_head")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            heads.entry(row.get(4)?).or_default().insert(ClaimableHead::from_row(row)?);
        }
        let tokens_due = self.tokens_due(connection, i64::MAX, usize::MAX >> 1)?.into_iter().collect();
        connection.execute_batch("DELETE FROM claimable_head; DELETE FROM group_token_due")?;
        *self = Self::Memory { heads, tokens_due };
        Ok(())
    }
}
