//! The candidates of a claim: whose turn it is, and which task is its first.
//!
//! A candidate is a queue, or in strict mode all queues of one weight. The chooser of
//! [`choice`](crate::rules::choice) decides which candidate has a turn. This file finds the first
//! task of each candidate that the claim selects and that no pause, limit or reservation stops. The
//! scan of a candidate only goes forward, so a claim terminates although it changes limits itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::name::Name;
use crate::api::queue::{QueueChoice, QueueMode};
use crate::api::task::{SessionId, TaskId};
use crate::api::timestamp::Timestamp;
use crate::api::write::{Claim, QueueSelection};
use crate::model::claims::affinity::affinity_sub_queue_of;
use crate::model::limits::fair_share::TrialShares;
use crate::model::limits::headroom::Headroom;
use crate::model::state::{Now, State};
use crate::model::tasks::sub_queue::SubQueue;
use crate::model::tasks::task::Task;
use crate::rules::choice::{Chooser, QueueCandidate};
use crate::rules::order::SortKey;
use crate::rules::share::FairShareTag;

/// The candidates of a claim, each with the first task that it may take.
pub(super) struct Candidates<'a> {
    claim: &'a Claim,
    /// The number of tasks that limits still let start.
    pub(super) headroom: Headroom,
    /// The last sort key that is urgent enough for the claim, if it has such a bound.
    last: Option<SortKey>,
    mode: QueueMode,
    pub(super) choice: QueueChoice,
    /// The number of tasks that the claim still wants from each queue.
    asked: BTreeMap<Name, usize>,
    /// The sort key up to which each candidate was scanned. A task that appears before it is left
    /// to the next claim.
    passed: BTreeMap<QueueCandidate, SortKey>,
    heads: BTreeMap<QueueCandidate, SortKey>,
    /// The candidate that has the turn.
    picked: Option<QueueCandidate>,
    /// True if groups share queues. The scan then does not follow the sort keys, so each scanned
    /// task is recorded in `looked_at`.
    pub(in crate::model) is_shared: bool,
    looked_at: BTreeSet<TaskId>,
    /// The fair shares after the starts of a claim on trial; `None` for a claim, which charges the
    /// state itself.
    trial: Option<TrialShares>,
    /// Sub-queues of affinity keys that are reserved for other sessions.
    reserved: BTreeSet<SubQueue>,
}

impl<'a> Candidates<'a> {
    /// Begins the scan of a claim. It uses the limits, shares and reservations of this moment.
    pub(in crate::model) fn of(state: &State, claim: &'a Claim, now: Now) -> Self {
        let mut candidates = Self {
            claim,
            headroom: Headroom::at(state, now.steady),
            last: claim.last_sort_key(now.wall),
            mode: claim.choice.mode.unwrap_or(state.mode),
            choice: claim.choice.clone(),
            asked: BTreeMap::new(),
            passed: BTreeMap::new(),
            heads: BTreeMap::new(),
            picked: None,
            is_shared: state.are_shared(),
            looked_at: BTreeSet::new(),
            trial: None,
            reserved: reserved_for_others(state, claim.session, now.wall),
        };
        candidates.look_again(state);
        candidates
    }

    /// Continues on trial with the headroom and the fair shares that an earlier scan left.
    pub(super) fn on_trial(mut self, state: &State, (headroom, shares): (Headroom, TrialShares)) -> Self {
        self.headroom = headroom;
        self.trial = Some(shares);
        self.drop_held_back(state);
        self
    }

    /// Returns the headroom and the fair shares that a scan on trial leaves.
    pub(super) fn left(self) -> (Headroom, TrialShares) {
        (self.headroom, self.trial.unwrap_or_default())
    }

    /// Returns the fair-share tag of a waiting task's group within its queue.
    fn fair_share_tag(&self, state: &State, task: &Task) -> FairShareTag {
        match &self.trial {
            Some(trial) => trial.fair_share_tag(state, task),
            None => state.fair_share_tag(task),
        }
    }

    /// Finds the first task of every candidate again.
    pub(super) fn look_again(&mut self, state: &State) {
        for (queue, asked) in asked(state, &self.claim.queues) {
            self.asked.entry(queue.clone()).or_insert(asked);
        }
        let candidates: Vec<QueueCandidate> = self.asked.keys().map(|queue| self.candidate_of(state, queue)).collect();
        candidates.into_iter().for_each(|candidate| self.find_head(state, candidate));
    }

    /// Requests more of the sub-queues of a candidate that may have a task before its head. Without
    /// a head, any task counts.
    fn require_before(&mut self, state: &State, candidate: &QueueCandidate, head: Option<SortKey>) {
        let end = [head, self.last].into_iter().flatten().min();
        for (_, task) in state.tasks.partial_sub_queues_before(end) {
            let is_of_candidate = self.candidate_of(state, &task.new.queue) == *candidate;
            if is_of_candidate && self.selects(task) && self.may_start(state, task) {
                state.tasks.request_sub_queue_of(task);
            }
        }
    }

    /// Requests more of the sub-queues that may have a task before `end`.
    pub(super) fn require_behind(&mut self, state: &State, end: Option<SortKey>) {
        for (_, task) in state.tasks.partial_sub_queues_before(end) {
            if self.selects(task) && self.may_start(state, task) {
                state.tasks.request_sub_queue_of(task);
            }
        }
    }

    /// Returns the candidate that a queue belongs to: itself, or in strict mode its weight.
    fn candidate_of(&self, state: &State, queue: &Name) -> QueueCandidate {
        QueueCandidate::of(self.mode, queue, state.settings_of(queue).weight)
    }

    /// Moves a candidate forward to its first task that the claim selects and that may start.
    fn find_head(&mut self, state: &State, candidate: QueueCandidate) {
        if self.is_shared {
            return self.find_head_by_shares(state, candidate);
        }
        let mut sort_key = self.passed.get(&candidate).copied();
        while let Some((next, task)) = state.tasks.waiting_behind(sort_key)
            && self.last.is_none_or(|last| next <= last)
        {
            if self.selects(task)
                && self.candidate_of(state, &task.new.queue) == candidate
                && self.may_start(state, task)
            {
                self.require_before(state, &candidate, Some(next));
                self.heads.insert(candidate, next);
                return;
            }
            sort_key = Some(next);
        }
        self.require_before(state, &candidate, None);
        self.heads.remove(&candidate);
    }

    /// Requests a task of each sub-queue of a candidate whose loaded tasks were all scanned.
    fn require_every_sub_queue(&mut self, state: &State, candidate: &QueueCandidate) {
        for (coverage, task) in state.tasks.partial_sub_queues() {
            let may_have = self.candidate_of(state, &task.new.queue) == *candidate && self.selects(task);
            if may_have && self.may_start(state, task) {
                let sub_queue = SubQueue::of(task);
                let is_next = |at: SortKey, one: &Task| {
                    at <= coverage && !self.looked_at.contains(&at.task) && SubQueue::of(one) == sub_queue
                };
                if !state.tasks.any_waiting(is_next) {
                    state.tasks.request_sub_queue_of(task);
                }
            }
        }
    }

    /// Finds the head of a candidate by fair shares. In each queue, the group with the lowest
    /// fair-share tag goes first. Among the queues of the candidate, groups below their minimum go
    /// first, then the lowest sort key.
    fn find_head_by_shares(&mut self, state: &State, candidate: QueueCandidate) {
        // By shares any sub-queue may be the first, so each needs one loaded task that was not
        // scanned.
        self.require_every_sub_queue(state, &candidate);
        let (mut first, mut behind) = (BTreeMap::<Name, (FairShareTag, SortKey)>::new(), None);
        while let Some((sort_key, task)) = state.tasks.waiting_behind(behind)
            && self.last.is_none_or(|last| sort_key <= last)
        {
            behind = Some(sort_key);
            let is_of_candidate = self.selects(task) && self.candidate_of(state, &task.new.queue) == candidate;
            if is_of_candidate && !self.looked_at.contains(&sort_key.task) && self.may_start(state, task) {
                let next = (self.fair_share_tag(state, task), sort_key);
                first.entry(task.new.queue.clone()).and_modify(|first| *first = next.min(*first)).or_insert(next);
            }
        }
        let next =
            first.into_values().min_by_key(|(fair_share_tag, sort_key)| (!fair_share_tag.is_guaranteed(), *sort_key));
        match next {
            Some((_, sort_key)) => self.heads.insert(candidate, sort_key),
            None => self.heads.remove(&candidate),
        };
    }

    /// Returns whether no pause and no limit stops a waiting task.
    pub(super) fn may_start(&mut self, state: &State, task: &Task) -> bool {
        !state.is_paused(task) && self.headroom.allows(state, task)
    }

    /// Returns whether the claim selects a task: its kind, its queue if the claim wants more of it,
    /// and no reservation for another session.
    pub(in crate::model) fn selects(&self, task: &Task) -> bool {
        let is_reserved = || affinity_sub_queue_of(task).is_some_and(|candidate| self.reserved.contains(&candidate));
        self.claim.selects_kind(&task.new.kind, task.new.orchestration)
            && self.asked.get(&task.new.queue).is_some_and(|asked| *asked > 0)
            && !is_reserved()
    }

    /// Returns the first task of the candidate that has the turn, and counts it as scanned.
    pub(in crate::model) fn next(&mut self, state: &State) -> Option<TaskId> {
        if self.is_shared {
            // Each start may have changed the fair-share tags of groups.
            self.look_again(state);
        }
        let mut chooser = self.chooser(state);
        let picked = chooser.pick()?;
        let candidate = chooser.candidate(picked)?.clone();
        let sort_key = *self.heads.get(&candidate)?;
        self.passed.insert(candidate.clone(), sort_key);
        self.looked_at.insert(sort_key.task);
        self.picked = Some(candidate);
        Some(sort_key.task)
    }

    /// Moves the candidates forward whose first task is now stopped by a limit that this claim used
    /// up.
    fn drop_held_back(&mut self, state: &State) {
        let Self { heads, headroom, .. } = self;
        let mut is_blocked =
            |sort_key: &SortKey| state.tasks.get(sort_key.task).is_none_or(|task| !headroom.allows(state, task));
        let blocked = heads.iter().filter(|(_, sort_key)| is_blocked(sort_key)).map(|(candidate, _)| candidate.clone());
        let blocked: Vec<QueueCandidate> = blocked.collect();
        blocked.into_iter().for_each(|candidate| self.find_head(state, candidate));
    }

    /// Returns the chooser among the candidates that have a head.
    fn chooser(&self, state: &State) -> Chooser {
        let weight = |candidate: &QueueCandidate| match candidate {
            QueueCandidate::Weight(weight) => weight.0,
            QueueCandidate::Queue(queue) => state.settings_of(queue).weight,
        };
        let candidates = self.heads.keys().map(|candidate| (candidate.clone(), weight(candidate)));
        Chooser::new(self.mode, self.choice.clone(), candidates)
    }

    /// Records that the claim took the task that [`next`](Self::next) returned.
    pub(in crate::model) fn took(&mut self, state: &State) {
        let mut chooser = self.chooser(state);
        chooser.pick();
        chooser.took();
        self.choice = chooser.choice();
        let Some(candidate) = self.picked.take() else { return };
        let task = self.heads.remove(&candidate).and_then(|sort_key| state.tasks.get(sort_key.task));
        if let Some(task) = task {
            self.headroom.start(state, task);
            if let Some(trial) = self.trial.as_mut().filter(|_| self.is_shared) {
                trial.start(state, task);
            }
            self.asked.entry(task.new.queue.clone()).and_modify(|asked| *asked = asked.saturating_sub(1));
        }
        if self.headroom.is_limited() && !self.is_shared {
            self.drop_held_back(state);
        }
        self.find_head(state, candidate);
    }
}

/// Returns the sub-queues of affinity keys that are reserved for other sessions now.
fn reserved_for_others(state: &State, session: SessionId, now: Timestamp) -> BTreeSet<SubQueue> {
    let reserved = state.reservations(now).filter(|(_, _, (preferred, _))| *preferred != session);
    reserved.map(|(sub_queue, ..)| sub_queue.clone()).collect()
}

/// Returns the largest number of tasks that a claim wants from each queue.
fn asked<'a>(state: &'a State, queues: &'a QueueSelection) -> BTreeMap<&'a Name, usize> {
    let mut asked = BTreeMap::<&Name, usize>::new();
    match queues {
        QueueSelection::All => asked.extend(state.queues.iter().map(|queue| (queue, usize::MAX))),
        QueueSelection::Only(queues) => {
            for (queue, limit) in queues {
                let asked = asked.entry(queue).or_default();
                *asked = asked.saturating_add(*limit);
            }
        }
    }
    asked
}
