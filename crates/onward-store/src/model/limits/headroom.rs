//! Headroom: the number of tasks that limits still let start during one claim.
//!
//! It is exact, although it is computed once: no other claim starts a task before this one ends,
//! because the writes of a store take effect one after the other, also with several processes.

use std::time::Duration;

use foldhash::HashMap;

use crate::api::limit::LimitScope;
use crate::api::name::Name;
use crate::model::limits::limit::scopes;
use crate::model::state::State;
use crate::model::tasks::task::Task;

/// The number of tasks that may still start, by scope. Each scope is computed on first use and
/// counted down from then on, because a claim of thousands checks most of them again and again.
/// [`take_tokens`](Self::take_tokens) takes the tokens of the started tasks at the end.
#[derive(Debug)]
pub(in crate::model) struct Headroom {
    now: Duration,
    /// True if any limit exists; mostly none does.
    is_limited: bool,
    all: Option<ScopeHeadroom>,
    queues: HashMap<Name, ScopeHeadroom>,
    kinds: HashMap<Name, ScopeHeadroom>,
    groups: HashMap<Name, ScopeHeadroom>,
}

/// The headroom of one scope.
#[derive(Debug, Clone, Copy)]
struct ScopeHeadroom {
    left: usize,
    /// The number of started tasks, whose tokens are taken at the end.
    started: u32,
}

impl Headroom {
    /// Returns a headroom in which no scope is computed yet.
    pub(in crate::model) fn at(state: &State, now: Duration) -> Self {
        let (queues, kinds, groups) = (HashMap::default(), HashMap::default(), HashMap::default());
        Self { now, is_limited: state.has_limits(), all: None, queues, kinds, groups }
    }

    /// Returns whether a start may reduce the headroom.
    pub(in crate::model) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Returns whether every limit lets a task start.
    pub(in crate::model) fn allows(&mut self, state: &State, task: &Task) -> bool {
        !self.is_limited || self.of(state, task).into_iter().flatten().all(|scope| scope.left > 0)
    }

    /// Returns the first scope of a task in which nothing more may start.
    pub(in crate::model) fn exhausted(&mut self, state: &State, task: &Task) -> Option<LimitScope> {
        let mut left = self.of(state, task).map(|scope| scope.map_or(usize::MAX, |scope| scope.left)).into_iter();
        scopes(task).find(|_| left.next() == Some(0))
    }

    /// Counts a task that starts, after [`allows`](Self::allows) accepted it.
    pub(in crate::model) fn start(&mut self, state: &State, task: &Task) {
        if self.is_limited {
            for scope in self.of(state, task).into_iter().flatten() {
                scope.left = scope.left.saturating_sub(1);
                scope.started += 1;
            }
        }
    }

    /// Returns the headroom of each scope that contains a task.
    fn of(&mut self, state: &State, task: &Task) -> [Option<&mut ScopeHeadroom>; 4] {
        let now = self.now;
        let headroom = |scope: LimitScope| ScopeHeadroom { left: state.headroom_in(&scope, now), started: 0 };
        let (queue, kind, group) = (&task.new.queue, &task.new.kind, &task.new.group);
        [
            Some(self.all.get_or_insert_with(|| headroom(LimitScope::All))),
            Some(self.queues.entry(queue.clone()).or_insert_with(|| headroom(LimitScope::Queue(queue.clone())))),
            Some(self.kinds.entry(kind.clone()).or_insert_with(|| headroom(LimitScope::Kind(kind.clone())))),
            group.as_ref().map(|group| {
                self.groups.entry(group.clone()).or_insert_with(|| headroom(LimitScope::Group(group.clone())))
            }),
        ]
    }

    /// Takes the tokens of the started tasks from the buckets.
    pub(in crate::model) fn take_tokens(self, state: &mut State) {
        let all = self.all.map(|headroom| (LimitScope::All, headroom));
        let queues = self.queues.into_iter().map(|(queue, headroom)| (LimitScope::Queue(queue), headroom));
        let kinds = self.kinds.into_iter().map(|(kind, headroom)| (LimitScope::Kind(kind), headroom));
        let groups = self.groups.into_iter().map(|(group, headroom)| (LimitScope::Group(group), headroom));
        for (scope, headroom) in all.into_iter().chain(queues).chain(kinds).chain(groups) {
            if headroom.started > 0 {
                state.take_tokens(scope, headroom.started);
            }
        }
    }
}
