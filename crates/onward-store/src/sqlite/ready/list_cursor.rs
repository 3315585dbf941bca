//! A cursor over one ready list.

use std::collections::VecDeque;

use crate::api::error::Result;
use crate::rules::order::SortKey;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::ready::index::Index;

/// A cursor over the due tasks of one list. It reads them in pieces, so that a claim over many
/// lists reads little of each.
#[derive(Debug)]
pub(in crate::sqlite) struct ListCursor {
    pub(in crate::sqlite) list: i64,
    buffered: VecDeque<SortKey>,
    last: Option<SortKey>,
    exhausted: bool,
}

impl ListCursor {
    /// Returns a cursor that begins after a sort key, or at the first task.
    pub(in crate::sqlite) fn behind(list: i64, sort_key: Option<SortKey>) -> Self {
        Self { list, buffered: VecDeque::new(), last: sort_key, exhausted: false }
    }

    /// Returns the next task without removing it from the list. Reads up to `want` tasks if none is
    /// buffered.
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

    /// Moves past the task that `peek` returned.
    pub(in crate::sqlite) fn advance(&mut self) {
        self.buffered.pop_front();
    }
}
