//! Which part of a store a state holds, and what was looked for beyond it.
//!
//! The memory store holds everything, and nothing here concerns it. A store that keeps its tasks
//! elsewhere decides with the same code over a part of them: whatever a write looks for and the
//! part does not have is noted here as a [`LoadRequest`], and the write is decided again when it has been
//! loaded. So what a store decides is what the specification says, however little is loaded.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::api::limit::LimitScope;
use crate::api::name::Name;
use crate::api::task::{SessionId, TaskId};
use crate::model::coverage::load_request::LoadRequest;
use crate::model::coverage::loaded::{Loaded, LoadedUpTo};
use crate::model::coverage::more_waiting::PartialSubQueues;
use crate::model::limits::running::RunningCounts;
use crate::model::tasks::sub_queue::SubQueue;
use crate::model::tasks::task::Task;
use crate::rules::order::Place;

/// What a state knows of the store. A clone notes what it wants in the same place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Coverage {
    part: Option<Arc<Loaded>>,
    wants: Arc<Mutex<BTreeSet<LoadRequest>>>,
}

impl Coverage {
    pub(crate) fn part(&self) -> Option<&Loaded> {
        self.part.as_deref()
    }

    /// Notes what is to be loaded.
    pub(in crate::model) fn want(&self, want: LoadRequest) {
        self.wants.lock().unwrap_or_else(PoisonError::into_inner).insert(want);
    }

    /// Notes that a task was looked for that is not here.
    pub(in crate::model) fn miss(&self, task: TaskId) {
        if self.part().is_some_and(|part| task.0 > 0 && task.0 <= part.last_task && !part.tasks.contains(&task)) {
            self.want(LoadRequest::Task(task));
        }
    }

    /// Whether a part of what is asked for may be elsewhere; then it is noted as wanted.
    pub(in crate::model) fn lacks(
        &self,
        is_known: impl FnOnce(&Loaded) -> bool,
        want: impl FnOnce() -> LoadRequest,
    ) -> bool {
        let lacks = self.part().is_some_and(|part| !is_known(part));
        if lacks {
            self.want(want());
        }
        lacks
    }

    /// Notes that a key is wanted, unless it is known who has it.
    pub(in crate::model) fn lacks_key(&self, kind: &Name, key: &str) {
        // The copy is made for a part alone: the memory store looks at every key, and holds
        // everything.
        let Some(part) = self.part() else { return };
        let key = (kind.clone(), key.to_owned());
        if !part.keys.contains(&key) {
            self.want(LoadRequest::Key(key.0, key.1));
        }
    }

    /// Walks an order; who walks past what is known of it wants more.
    pub(in crate::model) fn walk<'a, K: Copy + Ord + 'a>(
        &'a self,
        order: &'a BTreeSet<K>,
        frontier: impl FnOnce(&Loaded) -> LoadedUpTo<K>,
        want: impl Fn() -> LoadRequest + 'a,
    ) -> impl Iterator<Item = K> + 'a {
        let frontier = self.part().map_or(LoadedUpTo::Everything, frontier);
        self.walk_up_to(order.iter().copied(), frontier, want)
    }

    /// Walks an order of which it is known up to where it is loaded.
    pub(in crate::model) fn walk_up_to<'a, K: Copy + Ord + 'a>(
        &'a self,
        mut order: impl Iterator<Item = K> + 'a,
        frontier: LoadedUpTo<K>,
        want: impl Fn() -> LoadRequest + 'a,
    ) -> impl Iterator<Item = K> + 'a {
        std::iter::from_fn(move || match (order.next(), frontier) {
            (next, LoadedUpTo::Everything) => next,
            (Some(next), LoadedUpTo::Key(last)) if next <= last => Some(next),
            _ => {
                self.want(want());
                None
            }
        })
    }

    /// How many tasks of a scope run that are not loaded.
    pub(in crate::model) fn running_elsewhere(&self, scope: &LimitScope) -> u64 {
        self.elsewhere().map_or(0, |counts| counts.of(scope))
    }

    /// The same, unless it would have to be counted first.
    pub(in crate::model) fn running_elsewhere_if_known(&self, scope: &LimitScope) -> Option<u64> {
        self.part().map_or(Some(0), |part| part.running.as_ref().map(|counts| counts.of(scope)))
    }

    /// How many tasks a session runs that are not loaded.
    pub(in crate::model) fn held_elsewhere(&self, session: SessionId) -> u64 {
        self.elsewhere().map_or(0, |counts| counts.by(session))
    }

    /// Whether a session runs any task that is not loaded.
    pub(in crate::model) fn holds_elsewhere(&self, session: SessionId) -> bool {
        let Some(part) = self.part() else { return false };
        match (&part.running, &part.holders) {
            (Some(counts), _) => counts.by(session) > 0,
            (None, Some(holders)) => match part.is_shown_by(holders, session) {
                Some(holds) => holds,
                None => self.held_elsewhere(session) > 0,
            },
            (None, None) => {
                self.want(LoadRequest::RunningSessions);
                false
            }
        }
    }

    fn elsewhere(&self) -> Option<&RunningCounts> {
        self.lacks(|part| part.running.is_some(), || LoadRequest::RunningCounts);
        self.part()?.running.as_ref()
    }

    /// Lanes of which more waits than is loaded: behind which place, and a task as all of the lane
    /// are.
    pub(in crate::model) fn more_waiting(&self) -> impl Iterator<Item = (&SubQueue, Place, &Task)> {
        self.lacks(|part| part.lanes.is_some(), || LoadRequest::SubQueues);
        let lanes = self.part().and_then(|part| part.lanes.as_ref());
        lanes.into_iter().flat_map(PartialSubQueues::iter)
    }

    /// Those of them of which more may wait before a place, if one is named.
    pub(in crate::model) fn more_waiting_before(&self, end: Option<Place>) -> impl Iterator<Item = (Place, &Task)> {
        self.lacks(|part| part.lanes.is_some(), || LoadRequest::SubQueues);
        let is_before = move |place: Place| end.is_none_or(|end| place < end);
        let lanes = self.part().and_then(|part| part.lanes.as_ref());
        // Asked for each task that a claim takes, and mostly there is none.
        let lanes = lanes.filter(|lanes| lanes.first.is_some_and(is_before));
        lanes
            .into_iter()
            .flat_map(PartialSubQueues::iter)
            .map(|(_, place, task)| (place, task))
            .filter(move |(place, _)| is_before(*place))
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn of(part: Loaded) -> Self {
        Self { part: Some(Arc::new(part)), wants: Arc::default() }
    }

    /// The part, to be added to.
    #[cfg(feature = "postgres")]
    pub(crate) fn part_mut(&mut self) -> Option<&mut Loaded> {
        self.part.as_mut().map(Arc::make_mut)
    }

    /// Whether anything was wanted so far.
    #[cfg(feature = "postgres")]
    pub(crate) fn wants_anything(&self) -> bool {
        !self.wants.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// What was wanted so far.
    #[cfg(feature = "postgres")]
    pub(crate) fn take_wants(&self) -> BTreeSet<LoadRequest> {
        std::mem::take(&mut *self.wants.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
