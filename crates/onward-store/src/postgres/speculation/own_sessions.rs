//! Tasks in sessions that a writer has opened itself: they are what they were, though others have
//! written, as long as nobody has interfered.
//!
//! Whoever changes a task that runs in a session of another writer, or anything that has to do with
//! it, sets the sequence `last_invalidation` to the number of its transaction, under the lock. Most
//! who write beside a node concern nothing that it runs: they submit, and end what they run
//! themselves.
//!
//! A session is a writer's own if it has opened it, and if the store has one with that number that
//! was opened at that time: a number that was given in a transaction that the server lost in a
//! crash is given again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::task::SessionId;
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::model::LoadRequest;
use crate::postgres::speculation::row_cache::RowCache;
use crate::postgres::working_set::applied::Applied;
use crate::postgres::working_set::contents::WorkingSet;

/// The sessions that a writer has opened.
#[derive(Debug, Clone, Default)]
pub(in crate::postgres) struct OwnSessions {
    opened: Arc<BTreeMap<SessionId, Timestamp>>,
}

impl OwnSessions {
    /// With those that a transaction has opened: it gave the numbers behind `before`, up to `last`.
    /// Those that are over make room, and then the oldest ones.
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

    /// Those of them that are open.
    pub(in crate::postgres) fn open_in(&self, working_set: &WorkingSet) -> BTreeSet<SessionId> {
        let is_open = |(session, at): &(&SessionId, &Timestamp)| working_set.opened_at(**session) == Some(**at);
        self.opened.iter().filter(is_open).map(|(session, _)| *session).collect()
    }

    /// Whether a task that is wanted runs in one of these, and nobody has interfered since it was
    /// sure.
    pub(in crate::postgres) fn may_be_valid(
        &self,
        request: &LoadRequest,
        row_cache: &RowCache,
        invalidation: i64,
    ) -> bool {
        is_still_valid(request, row_cache, invalidation, |session| self.opened.contains_key(session))
    }
}

/// Whether a task that is wanted runs in one of the writer's own sessions that are open, and nobody
/// has interfered since it was sure.
pub(in crate::postgres) fn is_valid_in_own_session(
    request: &LoadRequest,
    row_cache: &RowCache,
    invalidation: i64,
    own: &BTreeSet<SessionId>,
) -> bool {
    is_still_valid(request, row_cache, invalidation, |session| own.contains(session))
}

fn is_still_valid(
    request: &LoadRequest,
    row_cache: &RowCache,
    invalidation: i64,
    is_own: impl Fn(&SessionId) -> bool,
) -> bool {
    let LoadRequest::Task(task) = request else { return false };
    row_cache.validity_of(*task).is_some_and(|(session, since)| since == invalidation && is_own(&session))
}
