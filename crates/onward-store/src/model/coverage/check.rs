//! The check in every access to a partly loaded state.
//!
//! A write that needs a row that is not loaded records a [`LoadRequest`] here. The store loads the
//! row and decides the write again; see [the module](super).

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

/// The loaded part of a store, and the requests for more. Clones share the requests: a decision
/// works on a clone of the state, and the loader reads what the decision has requested. The lock is
/// there because reads record requests too, and they have only a shared reference.
#[derive(Debug, Clone, Default)]
pub(crate) struct Coverage {
    loaded: Option<Arc<Loaded>>,
    requests: Arc<Mutex<BTreeSet<LoadRequest>>>,
}

impl Coverage {
    /// Returns the loaded part; `None` if the whole state is present.
    pub(crate) fn loaded(&self) -> Option<&Loaded> {
        self.loaded.as_deref()
    }

    /// Records a request.
    pub(in crate::model) fn request(&self, request: LoadRequest) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).insert(request);
    }

    /// Requests a task unless it is loaded or cannot exist.
    pub(in crate::model) fn request_task(&self, task: TaskId) {
        if self.loaded().is_some_and(|loaded| task.0 > 0 && task.0 <= loaded.last_task && !loaded.tasks.contains(&task))
        {
            self.request(LoadRequest::Task(task));
        }
    }

    /// Returns whether a part of the requested rows may not be loaded. If so, records the request.
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

    /// Requests a key unless its owner is loaded.
    pub(in crate::model) fn request_key(&self, kind: &Name, key: &str) {
        // The key is copied only if the state is partly loaded. The memory store has everything
        // loaded, and would copy each key for no purpose.
        let Some(loaded) = self.loaded() else { return };
        let key = (kind.clone(), key.to_owned());
        if !loaded.keys.contains(&key) {
            self.request(LoadRequest::Key(key.0, key.1));
        }
    }

    /// Walks an order. A walk beyond its loaded part requests more.
    pub(in crate::model) fn walk<'a, K: Copy + Ord + 'a>(
        &'a self,
        order: &'a BTreeSet<K>,
        up_to: impl FnOnce(&Loaded) -> LoadedUpTo<K>,
        request: impl Fn() -> LoadRequest + 'a,
    ) -> impl Iterator<Item = K> + 'a {
        let up_to = self.loaded().map_or(LoadedUpTo::Everything, up_to);
        self.walk_up_to(order.iter().copied(), up_to, request)
    }

    /// Walks an order that is loaded up to an entry.
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

    /// Returns the number of running tasks of a scope that are not loaded.
    pub(in crate::model) fn running_unloaded(&self, scope: &LimitScope) -> u64 {
        self.unloaded().map_or(0, |counts| counts.of(scope))
    }

    /// Returns the number of running tasks of a scope that are not loaded; `None` if the counts are
    /// not loaded.
    pub(in crate::model) fn counted_unloaded_running(&self, scope: &LimitScope) -> Option<u64> {
        self.loaded().map_or(Some(0), |loaded| loaded.running.as_ref().map(|counts| counts.of(scope)))
    }

    /// Returns the number of running tasks of a session that are not loaded.
    pub(in crate::model) fn held_unloaded(&self, session: SessionId) -> u64 {
        self.unloaded().map_or(0, |counts| counts.by(session))
    }

    /// Returns whether a session runs any task that is not loaded.
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

    /// Returns the counts of running tasks that are not loaded. Requests them if they are unknown.
    fn unloaded(&self) -> Option<&RunningCounts> {
        self.request_unless(|loaded| loaded.running.is_some(), || LoadRequest::RunningCounts);
        self.loaded()?.running.as_ref()
    }

    /// Returns the sub-queues that are not fully loaded: the sort key up to which each is loaded,
    /// and a sample task of the sub-queue.
    pub(in crate::model) fn partial_sub_queues(&self) -> impl Iterator<Item = (&SubQueue, SortKey, &Task)> {
        self.request_unless(|loaded| loaded.sub_queues.is_some(), || LoadRequest::SubQueues);
        let sub_queues = self.loaded().and_then(|loaded| loaded.sub_queues.as_ref());
        sub_queues.into_iter().flat_map(PartialSubQueues::iter)
    }

    /// Returns the sub-queues that are not fully loaded and may have a task before `end`.
    pub(in crate::model) fn partial_sub_queues_before(
        &self,
        end: Option<SortKey>,
    ) -> impl Iterator<Item = (SortKey, &Task)> {
        self.request_unless(|loaded| loaded.sub_queues.is_some(), || LoadRequest::SubQueues);
        let is_before = move |sort_key: SortKey| end.is_none_or(|end| sort_key < end);
        let sub_queues = self.loaded().and_then(|loaded| loaded.sub_queues.as_ref());
        // This runs for each task that a claim takes, and mostly no sub-queue qualifies.
        let sub_queues = sub_queues.filter(|sub_queues| sub_queues.first.is_some_and(is_before));
        sub_queues
            .into_iter()
            .flat_map(PartialSubQueues::iter)
            .map(|(_, sort_key, task)| (sort_key, task))
            .filter(move |(sort_key, _)| is_before(*sort_key))
    }

    /// Returns the coverage of a partly loaded state.
    #[cfg(feature = "postgres")]
    pub(crate) fn of(loaded: Loaded) -> Self {
        Self { loaded: Some(Arc::new(loaded)), requests: Arc::default() }
    }

    /// Returns the loaded part for additions.
    #[cfg(feature = "postgres")]
    pub(crate) fn loaded_mut(&mut self) -> Option<&mut Loaded> {
        self.loaded.as_mut().map(Arc::make_mut)
    }

    /// Returns whether anything was requested so far.
    #[cfg(feature = "postgres")]
    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes the requests so far.
    #[cfg(feature = "postgres")]
    pub(crate) fn take_requests(&self) -> BTreeSet<LoadRequest> {
        std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
