//! Own sessions: tasks that run in sessions that the writer has opened itself stay valid, although
//! other writers have committed, as long as none has invalidated them.
//!
//! A writer that changes a task that runs in another writer's session, or any of its relations,
//! sets the sequence `last_invalidation` to the number of its transaction, under the lock. Most
//! concurrent writes concern nothing that other nodes run: they submit tasks, and end tasks that
//! they run themselves.
//!
//! A session is a writer's own if the writer has opened it, and if the store's session of that
//! number was opened at the same time. The number alone is not enough: the server reuses a number
//! if it lost the transaction in a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::task::SessionId;
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::model::LoadRequest;
use crate::postgres::speculation::row_cache::RowCache;
use crate::postgres::working_set::applied::Applied;
use crate::postgres::working_set::contents::WorkingSet;

/// The sessions that a writer has opened, with their opening times.
#[derive(Debug, Clone, Default)]
pub(in crate::postgres) struct OwnSessions {
    opened: Arc<BTreeMap<SessionId, Timestamp>>,
}

impl OwnSessions {
    /// Returns the list with the sessions that a transaction opened: it assigned the numbers after
    /// `before`, up to `last`. Closed sessions are dropped first, then the oldest ones.
    pub(in crate::postgres) fn with_those_of(&self, applied: &Applied, before: i64, last: i64) -> Self {
        let mut own = self.clone();
        if before == last {
            return own;
        }
        let opened = Arc::make_mut(&mut own.opened);
        opened.retain(|session, at| applied.opened_at(*session) == Some(*at));
        opened.extend((before + 1..=last).map(SessionId).filter_map(|new| Some((new, applied.opened_at(new)?))));
        while opened.len() > bounds::OWN_SESSIONS {
            opened.pop_first();
        }
        own
    }

    /// Returns the own sessions that are open.
    pub(in crate::postgres) fn open_in(&self, working_set: &WorkingSet) -> BTreeSet<SessionId> {
        let is_open = |(session, at): &(&SessionId, &Timestamp)| working_set.opened_at(**session) == Some(**at);
        self.opened.iter().filter(is_open).map(|(session, _)| *session).collect()
    }

    /// Returns true if a requested task runs in an own session, and no invalidation is known since
    /// it was verified. The caller checks again under the lock.
    pub(in crate::postgres) fn may_be_valid(
        &self,
        request: &LoadRequest,
        row_cache: &RowCache,
        invalidation: i64,
    ) -> bool {
        is_still_valid(request, row_cache, invalidation, |session| self.opened.contains_key(session))
    }
}

/// Returns true if a requested task runs in one of the open `own` sessions, and no transaction has
/// invalidated it since it was verified.
pub(in crate::postgres) fn is_valid_in_own_session(
    request: &LoadRequest,
    row_cache: &RowCache,
    invalidation: i64,
    own: &BTreeSet<SessionId>,
) -> bool {
    is_still_valid(request, row_cache, invalidation, |session| own.contains(session))
}

/// Compares the last invalidation with the one at which the cached task was verified.
fn is_still_valid(
    request: &LoadRequest,
    row_cache: &RowCache,
    invalidation: i64,
    is_own: impl Fn(&SessionId) -> bool,
) -> bool {
    let LoadRequest::Task(task) = request else { return false };
    row_cache.validity_of(*task).is_some_and(|(session, since)| since == invalidation && is_own(&session))
}
