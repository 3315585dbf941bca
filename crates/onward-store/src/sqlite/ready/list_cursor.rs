//! A cursor over one ready list.

use std::collections::VecDeque;

use crate::api::error::Result;
use crate::rules::order::SortKey;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::ready::index::Index;

/// Due tasks of one list, read in pieces, so that a claim over many lists reads little of each.
#[derive(Debug)]
pub(in crate::sqlite) struct ListCursor {
    /// The list's number.
    pub(in crate::sqlite) list: i64,
    /// The tasks that were read and not taken yet.
    buffered: VecDeque<SortKey>,
    /// The last task that was read.
    last: Option<SortKey>,
    /// True if the list has no tasks after `last`.
    exhausted: bool,
}

impl ListCursor {
    /// The tasks of a list behind a sort key, or all.
    pub(in crate::sqlite) fn behind(list: i64, sort_key: Option<SortKey>) -> Self {
        Self { list, buffered: VecDeque::new(), last: sort_key, exhausted: false }
    }

    /// Returns the list's next task, which stays in the list.
    pub(in crate::sqlite) fn peek(
        &mut self,
        connection: &Database<'_>,
        index: &mut Index,
        want: usize,
    ) -> Result<Option<SortKey>> {
        if self.buffered.is_empty() && !self.exhausted {
            let sort_keys = index.next_ready(connection, self.list, self.last, want)?;
            self.exhausted = sort_keys.len() < want;
            self.last = sort_keys.last().copied().or(self.last);
            self.buffered = sort_keys.into();
        }
        Ok(self.buffered.front().copied())
    }

    /// Takes the task that [`peek`](Self::peek) has returned.
    pub(in crate::sqlite) fn advance(&mut self) {
        self.buffered.pop_front();
    }
}
