//! Which part of a store a state holds, and what was looked for beyond it.
//!
//! The memory store holds everything, and nothing here concerns it. A store that keeps its tasks
//! elsewhere decides with the same code over a part of them: whatever a write looks for and the
//! part does not have is noted here as a [`Want`], and the write is decided again when it has been
//! loaded. So what a store decides is what the specification says, however little is loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::running::RunningCounts;
use super::task::{End, Task};
use crate::api::limit::LimitScope;
use crate::api::name::Name;
#[cfg(feature = "postgres")]
use crate::api::task::NewTask;
use crate::api::task::{SessionId, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::rules::order::Place;

/// Queue, kind, group and series: waiting tasks that have all of them in common go in the order of
/// their places. Orchestrations have lanes of their own, for claims may leave them out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane {
    pub(crate) queue: Name,
    pub(crate) kind: Name,
    pub(crate) group: Option<Name>,
    pub(crate) series: Option<Name>,
    pub(crate) orchestration: bool,
}

impl Lane {
    pub(super) fn of(task: &Task) -> Self {
        let new = &task.new;
        Self {
            queue: new.queue.clone(),
            kind: new.kind.clone(),
            group: new.group.clone(),
            series: new.affinity.clone(),
            orchestration: new.orchestration,
        }
    }

    /// A task as all of it are.
    #[cfg(feature = "postgres")]
    pub(super) fn task(&self, id: TaskId) -> Task {
        let Self { queue, kind, group, series, orchestration } = self.clone();
        let new = NewTask { queue, group, affinity: series, orchestration, ..NewTask::of(kind) };
        Task::submitted(id, new, Timestamp::MIN)
    }
}

/// Something that is to be loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Want {
    /// A task, and who waits for it.
    Task(TaskId),
    /// Who has a key of a kind.
    Key(Name, String),
    /// The keys whose time is over.
    KeysOver,
    /// Every child of a task.
    Children(TaskId),
    /// More of the messages that wait for an orchestration that is here.
    Messages(TaskId),
    /// What a session runs.
    Held(SessionId),
    /// What a session runs and somebody wants stopped.
    ToCancel(SessionId),
    /// How many tasks run, by session, queue, kind and group.
    Running,
    /// Which sessions run any.
    Holders,
    /// Which lanes there are, and the first tasks of each.
    Lanes,
    /// More of a lane.
    Lane(Lane),
    /// More of those that are not due.
    Scheduled,
    /// More of those that expire.
    Expiring,
    /// More of those that are to be finished from elsewhere.
    Overdue,
    /// More of those that have ended and did not say how long they are kept, the oldest end first.
    Ended,
    /// How many of these there are.
    EndedCount,
    /// More of those that have ended and said how long they are kept, by until when that is.
    Retained,
    /// More of the tasks of a queue in some states, by number.
    OfQueue(Name, Vec<TaskState>),
    /// How many live tasks a queue has.
    LiveIn(Name),
    /// Every task from a number up to, but not including, another.
    Between(TaskId, TaskId),
}

/// Up to where an order is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Frontier<K> {
    /// Nothing of it is.
    #[default]
    Unknown,
    /// All up to here.
    UpTo(K),
    /// All of it.
    End,
}

/// How many tasks run, by session, queue, kind and group.
pub(crate) type RunningRows = BTreeMap<(SessionId, Name, Name, Option<Name>), u64>;

/// Which sessions run tasks: one of each that runs any. That is less work than to count them, and
/// mostly enough.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holders {
    /// A task of each.
    pub(crate) one_of: BTreeMap<SessionId, TaskId>,
    /// But for these tasks, which were not looked at.
    pub(crate) but: Vec<TaskId>,
}

/// Lanes of which more waits than is loaded: behind which place, and a task as all of the lane are.
#[derive(Debug, Clone, Default)]
pub(super) struct MoreWaiting {
    lanes: BTreeMap<Lane, (Place, Arc<Task>)>,
    /// The first of the places.
    first: Option<Place>,
}

/// What is loaded.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    /// The highest number of a task in the store.
    pub(super) last_task: i64,
    /// Tasks that were looked for, there or not.
    pub(super) tasks: BTreeSet<TaskId>,
    /// Keys that were looked for, taken or not.
    pub(super) keys: BTreeSet<(Name, String)>,
    pub(super) children: BTreeSet<TaskId>,
    /// Orchestrations all of whose messages are here.
    pub(super) messages: BTreeSet<TaskId>,
    pub(super) held: BTreeSet<SessionId>,
    pub(super) to_cancel: BTreeSet<SessionId>,
    /// How many run that are not loaded.
    pub(super) running: Option<RunningCounts>,
    /// Which sessions run any, loaded or not.
    pub(super) holders: Option<Holders>,
    /// Lanes of which there is more. `None` if it is not known which there are.
    pub(super) lanes: Option<MoreWaiting>,
    pub(super) scheduled: Frontier<(Timestamp, TaskId)>,
    pub(super) expiring: Frontier<(Timestamp, TaskId)>,
    pub(super) overdue: Frontier<(Timestamp, TaskId)>,
    pub(super) ended: Frontier<(End, TaskId)>,
    pub(super) retained: Frontier<(Timestamp, TaskId)>,
    /// How many ended tasks that did not say how long they are kept are not loaded; `None` if that
    /// is not known.
    pub(super) ended_elsewhere: Option<u64>,
    pub(super) of_queue: BTreeMap<(Name, Vec<TaskState>), Frontier<TaskId>>,
    /// How many live tasks of a queue are not loaded.
    pub(super) live_elsewhere: BTreeMap<Name, u64>,
    pub(super) between: BTreeSet<(TaskId, TaskId)>,
}

impl MoreWaiting {
    #[cfg(feature = "postgres")]
    pub(super) fn of(lanes: BTreeMap<Lane, (Place, Arc<Task>)>) -> Self {
        let first = lanes.values().map(|(place, _)| *place).min();
        Self { lanes, first }
    }

    /// Of one lane no more waits, or more behind a place.
    #[cfg(feature = "postgres")]
    pub(super) fn set(&mut self, lane: &Lane, more: Option<(Place, Arc<Task>)>) {
        let mut lanes = std::mem::take(&mut self.lanes);
        match more {
            Some(more) => drop(lanes.insert(lane.clone(), more)),
            None => drop(lanes.remove(lane)),
        }
        *self = Self::of(lanes);
    }

    #[cfg(feature = "postgres")]
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = (&Lane, Place, &Task)> {
        self.lanes.iter().map(|(lane, (place, task))| (lane, *place, &**task))
    }
}

impl Part {
    /// Whether a session runs any task that is not loaded, if that can be told. Where the one that
    /// is known of is loaded, there may be others beside it.
    fn is_shown_by(&self, holders: &Holders, session: SessionId) -> Option<bool> {
        match holders.one_of.get(&session) {
            Some(task) => (!self.tasks.contains(task)).then_some(true),
            None => holders.but.iter().all(|task| self.tasks.contains(task)).then_some(false),
        }
    }
}

/// What a state knows of the store. A clone notes what it wants in the same place.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    part: Option<Arc<Part>>,
    wants: Arc<Mutex<BTreeSet<Want>>>,
}

impl Known {
    pub(super) fn part(&self) -> Option<&Part> {
        self.part.as_deref()
    }

    /// Notes what is to be loaded.
    pub(super) fn want(&self, want: Want) {
        self.wants.lock().unwrap_or_else(PoisonError::into_inner).insert(want);
    }

    /// Notes that a task was looked for that is not here.
    pub(super) fn miss(&self, task: TaskId) {
        if self.part().is_some_and(|part| task.0 > 0 && task.0 <= part.last_task && !part.tasks.contains(&task)) {
            self.want(Want::Task(task));
        }
    }

    /// Whether a part of what is asked for may be elsewhere; then it is noted as wanted.
    pub(super) fn lacks(&self, is_known: impl FnOnce(&Part) -> bool, want: impl FnOnce() -> Want) -> bool {
        let lacks = self.part().is_some_and(|part| !is_known(part));
        if lacks {
            self.want(want());
        }
        lacks
    }

    /// Notes that a key is wanted, unless it is known who has it.
    pub(super) fn lacks_key(&self, kind: &Name, key: &str) {
        // The copy is made for a part alone: the memory store looks at every key, and holds
        // everything.
        let Some(part) = self.part() else { return };
        let key = (kind.clone(), key.to_owned());
        if !part.keys.contains(&key) {
            self.want(Want::Key(key.0, key.1));
        }
    }

    /// Walks an order; who walks past what is known of it wants more.
    pub(super) fn walk<'a, K: Copy + Ord + 'a>(
        &'a self,
        order: &'a BTreeSet<K>,
        frontier: impl FnOnce(&Part) -> Frontier<K>,
        want: impl Fn() -> Want + 'a,
    ) -> impl Iterator<Item = K> + 'a {
        let frontier = self.part().map_or(Frontier::End, frontier);
        self.walk_up_to(order.iter().copied(), frontier, want)
    }

    /// Walks an order of which it is known up to where it is loaded.
    pub(super) fn walk_up_to<'a, K: Copy + Ord + 'a>(
        &'a self,
        mut order: impl Iterator<Item = K> + 'a,
        frontier: Frontier<K>,
        want: impl Fn() -> Want + 'a,
    ) -> impl Iterator<Item = K> + 'a {
        std::iter::from_fn(move || match (order.next(), frontier) {
            (next, Frontier::End) => next,
            (Some(next), Frontier::UpTo(last)) if next <= last => Some(next),
            _ => {
                self.want(want());
                None
            }
        })
    }

    /// How many tasks of a scope run that are not loaded.
    pub(super) fn running_elsewhere(&self, scope: &LimitScope) -> u64 {
        self.elsewhere().map_or(0, |counts| counts.of(scope))
    }

    /// The same, unless it would have to be counted first.
    pub(super) fn running_elsewhere_if_known(&self, scope: &LimitScope) -> Option<u64> {
        self.part().map_or(Some(0), |part| part.running.as_ref().map(|counts| counts.of(scope)))
    }

    /// How many tasks a session runs that are not loaded.
    pub(super) fn held_elsewhere(&self, session: SessionId) -> u64 {
        self.elsewhere().map_or(0, |counts| counts.by(session))
    }

    /// Whether a session runs any task that is not loaded.
    pub(super) fn holds_elsewhere(&self, session: SessionId) -> bool {
        let Some(part) = self.part() else { return false };
        match (&part.running, &part.holders) {
            (Some(counts), _) => counts.by(session) > 0,
            (None, Some(holders)) => match part.is_shown_by(holders, session) {
                Some(holds) => holds,
                None => self.held_elsewhere(session) > 0,
            },
            (None, None) => {
                self.want(Want::Holders);
                false
            }
        }
    }

    fn elsewhere(&self) -> Option<&RunningCounts> {
        self.lacks(|part| part.running.is_some(), || Want::Running);
        self.part()?.running.as_ref()
    }

    /// Lanes of which more waits than is loaded: behind which place, and a task as all of the lane
    /// are.
    pub(super) fn more_waiting(&self) -> impl Iterator<Item = (&Lane, Place, &Task)> {
        self.lacks(|part| part.lanes.is_some(), || Want::Lanes);
        let lanes = self.part().and_then(|part| part.lanes.as_ref());
        lanes.into_iter().flat_map(MoreWaiting::iter)
    }

    /// Those of them of which more may wait before a place, if one is named.
    pub(super) fn more_waiting_before(&self, end: Option<Place>) -> impl Iterator<Item = (Place, &Task)> {
        self.lacks(|part| part.lanes.is_some(), || Want::Lanes);
        let is_before = move |place: Place| end.is_none_or(|end| place < end);
        let lanes = self.part().and_then(|part| part.lanes.as_ref());
        // Asked for each task that a claim takes, and mostly there is none.
        let lanes = lanes.filter(|lanes| lanes.first.is_some_and(is_before));
        lanes
            .into_iter()
            .flat_map(MoreWaiting::iter)
            .map(|(_, place, task)| (place, task))
            .filter(move |(place, _)| is_before(*place))
    }

    #[cfg(feature = "postgres")]
    pub(super) fn of(part: Part) -> Self {
        Self { part: Some(Arc::new(part)), wants: Arc::default() }
    }

    /// The part, to be added to.
    #[cfg(feature = "postgres")]
    pub(super) fn part_mut(&mut self) -> Option<&mut Part> {
        self.part.as_mut().map(Arc::make_mut)
    }

    /// Whether anything was wanted so far.
    #[cfg(feature = "postgres")]
    pub(super) fn wants_anything(&self) -> bool {
        !self.wants.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// What was wanted so far.
    #[cfg(feature = "postgres")]
    pub(super) fn take_wants(&self) -> BTreeSet<Want> {
        std::mem::take(&mut *self.wants.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
