//! A cursor over one ready list.

use std::collections::VecDeque;

use crate::api::error::Result;
use crate::rules::order::SortKey;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::ready::index::Index;

/// Due tasks of one list, read in pieces, so that a claim over many lists reads little of each.
#[derive(Debug)]
pub(in crate::sqlite) struct ListCursor {
    pub(in crate::sqlite) list: i64,
    buffered: VecDeque<SortKey>,
    last: Option<SortKey>,
    exhausted: bool,
}

impl ListCursor {
    /// Returns the cursor of the tasks of a list behind a sort key, or of all.
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

    /// Steps behind the head that `peek` returned.
    pub(in crate::sqlite) fn advance(&mut self) {
        self.buffered.pop_front();
    }
}
