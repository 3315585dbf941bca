//! Which part of a store a state holds, and what was looked for beyond it.
//!
//! The memory store holds everything, and nothing here concerns it. A store that keeps its tasks
//! elsewhere decides with the same code over a part of them: whatever a write looks for and the
//! part does not have is noted here as a [`LoadRequest`], and the write is decided again when it
//! has been loaded. So what a store decides is what the specification says, however little is
//! loaded.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::api::limit::LimitScope;
use crate::api::name::Name;
use crate::api::task::{SessionId, TaskId};
use crate::model::coverage::load_request::LoadRequest;
use crate::model::coverage::loaded::{Loaded, LoadedUpTo};
use crate::model::coverage::partial_sub_queues::PartialSubQueues;
use crate::model::limits::running::RunningCounts;
use crate::model::tasks::sub_queue::SubQueue;
use crate::model::tasks::task::Task;
use crate::rules::order::SortKey;

/// What a state knows of the store. A clone notes what it wants in the same place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Coverage {
    loaded: Option<Arc<Loaded>>,
    requests: Arc<Mutex<BTreeSet<LoadRequest>>>,
}

impl Coverage {
    pub(crate) fn loaded(&self) -> Option<&Loaded> {
        self.loaded.as_deref()
    }

    /// Notes what is to be loaded.
    pub(in crate::model) fn request(&self, request: LoadRequest) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).insert(request);
    }

    /// Notes that a task was looked for that is not here.
    pub(in crate::model) fn request_task(&self, task: TaskId) {
        if self.loaded().is_some_and(|loaded| task.0 > 0 && task.0 <= loaded.last_task && !loaded.tasks.contains(&task))
        {
            self.request(LoadRequest::Task(task));
        }
    }

    /// Whether a part of what is asked for may be elsewhere; then it is noted as wanted.
    pub(in crate::model) fn request_unless(
        &self,
        is_loaded: impl FnOnce(&Loaded) -> bool,
        request: impl FnOnce() -> LoadRequest,
    ) -> bool {
        let request_unless = self.loaded().is_some_and(|loaded| !is_loaded(loaded));
        if request_unless {
            self.request(request());
        }
        request_unless
    }

    /// Notes that a key is wanted, unless it is known who has it.
    pub(in crate::model) fn request_key(&self, kind: &Name, key: &str) {
        // The copy is made for a part alone: the memory store looks at every key, and holds
        // everything.
        let Some(loaded) = self.loaded() else { return };
        let key = (kind.clone(), key.to_owned());
        if !loaded.keys.contains(&key) {
            self.request(LoadRequest::Key(key.0, key.1));
        }
    }

    /// Walks an order; who walks past what is known of it wants more.
    pub(in crate::model) fn walk<'a, K: Copy + Ord + 'a>(
        &'a self,
        order: &'a BTreeSet<K>,
        up_to: impl FnOnce(&Loaded) -> LoadedUpTo<K>,
        request: impl Fn() -> LoadRequest + 'a,
    ) -> impl Iterator<Item = K> + 'a {
        let up_to = self.loaded().map_or(LoadedUpTo::Everything, up_to);
        self.walk_up_to(order.iter().copied(), up_to, request)
    }

    /// Walks an order of which it is known up to where it is loaded.
    pub(in crate::model) fn walk_up_to<'a, K: Copy + Ord + 'a>(
        &'a self,
        mut order: impl Iterator<Item = K> + 'a,
        up_to: LoadedUpTo<K>,
        request: impl Fn() -> LoadRequest + 'a,
    ) -> impl Iterator<Item = K> + 'a {
        std::iter::from_fn(move || match (order.next(), up_to) {
            (next, LoadedUpTo::Everything) => next,
            (Some(next), LoadedUpTo::Key(last)) if next <= last => Some(next),
            _ => {
                self.request(request());
                None
            }
        })
    }

    /// How many tasks of a scope run that are not loaded.
    pub(in crate::model) fn running_unloaded(&self, scope: &LimitScope) -> u64 {
        self.unloaded().map_or(0, |counts| counts.of(scope))
    }

    /// The same, unless it would have to be counted first.
    pub(in crate::model) fn running_unloaded_if_counted(&self, scope: &LimitScope) -> Option<u64> {
        self.loaded().map_or(Some(0), |loaded| loaded.running.as_ref().map(|counts| counts.of(scope)))
    }

    /// How many tasks a session runs that are not loaded.
    pub(in crate::model) fn held_unloaded(&self, session: SessionId) -> u64 {
        self.unloaded().map_or(0, |counts| counts.by(session))
    }

    /// Whether a session runs any task that is not loaded.
    pub(in crate::model) fn holds_unloaded(&self, session: SessionId) -> bool {
        let Some(loaded) = self.loaded() else { return false };
        match (&loaded.running, &loaded.running_sessions) {
            (Some(counts), _) => counts.by(session) > 0,
            (None, Some(running_sessions)) => match loaded.holds_unloaded_by(running_sessions, session) {
                Some(holds) => holds,
                None => self.held_unloaded(session) > 0,
            },
            (None, None) => {
                self.request(LoadRequest::RunningSessions);
                false
            }
        }
    }

    fn unloaded(&self) -> Option<&RunningCounts> {
        self.request_unless(|loaded| loaded.running.is_some(), || LoadRequest::RunningCounts);
        self.loaded()?.running.as_ref()
    }

    /// Sub-queues of which more waits than is loaded: behind which place, and a task as all of the
    /// sub-queue are.
    pub(in crate::model) fn partial_sub_queues(&self) -> impl Iterator<Item = (&SubQueue, SortKey, &Task)> {
        self.request_unless(|loaded| loaded.sub_queues.is_some(), || LoadRequest::SubQueues);
        let sub_queues = self.loaded().and_then(|loaded| loaded.sub_queues.as_ref());
        sub_queues.into_iter().flat_map(PartialSubQueues::iter)
    }

    /// Those of them of which more may wait before a place, if one is named.
    pub(in crate::model) fn partial_sub_queues_before(
        &self,
        end: Option<SortKey>,
    ) -> impl Iterator<Item = (SortKey, &Task)> {
        self.request_unless(|loaded| loaded.sub_queues.is_some(), || LoadRequest::SubQueues);
        let is_before = move |sort_key: SortKey| end.is_none_or(|end| sort_key < end);
        let sub_queues = self.loaded().and_then(|loaded| loaded.sub_queues.as_ref());
        // Asked for each task that a claim takes, and mostly there is none.
        let sub_queues = sub_queues.filter(|sub_queues| sub_queues.first.is_some_and(is_before));
        sub_queues
            .into_iter()
            .flat_map(PartialSubQueues::iter)
            .map(|(_, sort_key, task)| (sort_key, task))
            .filter(move |(sort_key, _)| is_before(*sort_key))
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn of(loaded: Loaded) -> Self {
        Self { loaded: Some(Arc::new(loaded)), requests: Arc::default() }
    }

    /// The part, to be added to.
    #[cfg(feature = "postgres")]
    pub(crate) fn loaded_mut(&mut self) -> Option<&mut Loaded> {
        self.loaded.as_mut().map(Arc::make_mut)
    }

    /// Whether anything was wanted so far.
    #[cfg(feature = "postgres")]
    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// What was wanted so far.
    #[cfg(feature = "postgres")]
    pub(crate) fn take_requests(&self) -> BTreeSet<LoadRequest> {
        std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
