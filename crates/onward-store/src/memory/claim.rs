//! Handing tasks to sessions.

use std::collections::BTreeMap;

use super::state::State;
use super::task::Task;
use crate::event::Change;
use crate::limits;
use crate::name::Name;
use crate::outcome::{Claimed, Outcome, Refusal};
use crate::queue::{QueueChoice, QueueMode, QueueTurn};
use crate::rules::choice::{Chooser, Group};
use crate::rules::order::Place;
use crate::task::{ClaimedTask, SessionId, TaskId, TaskRecord, TaskState};
use crate::timestamp::Timestamp;
use crate::write::{Claim, KindSelection, QueueSelection, Scope};

impl State {
    pub(super) fn claim(&mut self, claim: &Claim) -> Result<Outcome, Refusal> {
        self.open(claim.session)?;
        // Before the sweep: a live process that was only late does not lose its own leases by asking for work.
        self.renew(claim.session);
        self.sweep();
        let (tasks, turn) = self.take(claim);
        Ok(Outcome::Claimed(Claimed {
            tasks,
            cancel: self.to_cancel(claim.session),
            next_due: self.next_due(),
            mode: claim.choice.mode.unwrap_or(self.mode),
            turn,
            configuration: self.configuration,
        }))
    }

    fn take(&mut self, claim: &Claim) -> (Vec<ClaimedTask>, QueueTurn) {
        let now = self.now.wall;
        let mut lines = Lines::of(self, claim);
        let mut tasks = Vec::new();
        while tasks.len() < claim.limit.min(limits::CLAIM)
            && let Some(id) = lines.next(self)
        {
            if self.tasks.get(id).is_some_and(|task| task.has_expired(now)) {
                self.end(id, TaskState::Expired);
                // What followed it may be the first of another line.
                lines.look_again(self);
                continue;
            }
            tasks.extend(self.start(id, claim.session));
            lines.took(self);
        }
        (tasks, lines.choice.turn)
    }

    /// Begins an attempt under a new lease.
    pub(super) fn start(&mut self, id: TaskId, session: SessionId) -> Option<ClaimedTask> {
        let now = self.now.wall;
        self.tasks.change(id, |task| task.start(session, now));
        let task = self.tasks.get(id)?;
        let claimed = task.claimed(task.lease()?, self.settings_of(&task.new.queue).weight);
        self.log(id, Change::Started { attempt: claimed.attempt });
        Some(claimed)
    }

    fn is_paused(&self, task: &Task) -> bool {
        let scopes = [Scope::All, Scope::Queue(task.new.queue.clone()), Scope::Kind(task.new.kind.clone())];
        scopes.iter().any(|scope| self.pauses.contains_key(scope))
    }

    /// What [`take`](Self::take) would hand out first.
    pub(super) fn peek(&self, claim: &Claim, now: Timestamp) -> Option<TaskRecord> {
        let mut lines = Lines::of(self, claim);
        while let Some(task) = lines.next(self).and_then(|id| self.tasks.get(id)) {
            if !task.has_expired(now) {
                return Some(task.record(true));
            }
            lines.look_again(self);
        }
        None
    }
}

/// The lines of tasks among which a claim chooses, each with the first task that it may take.
struct Lines<'a> {
    claim: &'a Claim,
    mode: QueueMode,
    choice: QueueChoice,
    /// How many more from each queue.
    room: BTreeMap<Name, usize>,
    /// Up to where each line has been looked at; what comes before that later is left to the next claim.
    passed: BTreeMap<Group, Place>,
    heads: BTreeMap<Group, Place>,
    /// Whose turn it is.
    picked: Option<Group>,
}

impl<'a> Lines<'a> {
    fn of(state: &State, claim: &'a Claim) -> Self {
        let mut lines = Self {
            claim,
            mode: claim.choice.mode.unwrap_or(state.mode),
            choice: claim.choice.clone(),
            room: BTreeMap::new(),
            passed: BTreeMap::new(),
            heads: BTreeMap::new(),
            picked: None,
        };
        lines.look_again(state);
        lines
    }

    /// Finds the first task of every line.
    fn look_again(&mut self, state: &State) {
        for (queue, asked) in asked(state, &self.claim.queues) {
            self.room.entry(queue.clone()).or_insert_with(|| asked.min(state.room_of(queue)));
        }
        let groups: Vec<Group> = self.room.keys().map(|queue| self.group_of(state, queue)).collect();
        groups.into_iter().for_each(|group| self.find_head(state, group));
    }

    fn group_of(&self, state: &State, queue: &Name) -> Group {
        Group::of(self.mode, queue, state.settings_of(queue).weight)
    }

    fn find_head(&mut self, state: &State, group: Group) {
        let mut place = self.passed.get(&group).copied();
        while let Some((next, task)) = state.tasks.waiting_behind(place) {
            if self.wants(task) && self.group_of(state, &task.new.queue) == group && !state.is_paused(task) {
                self.heads.insert(group, next);
                return;
            }
            place = Some(next);
        }
        self.heads.remove(&group);
    }

    fn wants(&self, task: &Task) -> bool {
        let of_kind = match &self.claim.kinds {
            KindSelection::All => true,
            KindSelection::Only(kinds) => kinds.contains(&task.new.kind),
        };
        of_kind && self.room.get(&task.new.queue).is_some_and(|room| *room > 0)
    }

    /// The first task of the line whose turn it is. It counts as looked at, whatever becomes of it.
    fn next(&mut self, state: &State) -> Option<TaskId> {
        let mut chooser = self.chooser(state);
        let picked = chooser.pick()?;
        let group = chooser.group(picked)?.clone();
        let place = *self.heads.get(&group)?;
        self.passed.insert(group.clone(), place);
        self.picked = Some(group);
        Some(place.task)
    }

    fn chooser(&self, state: &State) -> Chooser {
        let weight = |group: &Group| match group {
            Group::Weight(weight) => weight.0,
            Group::Queue(queue) => state.settings_of(queue).weight,
        };
        let groups = self.heads.keys().map(|group| (group.clone(), weight(group)));
        Chooser::new(self.mode, self.choice.clone(), groups)
    }

    /// Notes that the task that [`next`](Self::next) named was handed out.
    fn took(&mut self, state: &State) {
        let mut chooser = self.chooser(state);
        chooser.pick();
        chooser.took();
        self.choice = chooser.choice();
        let Some(group) = self.picked.take() else { return };
        let queue = self.heads.get(&group).and_then(|place| state.tasks.get(place.task)).map(|task| &task.new.queue);
        if let Some(room) = queue.and_then(|queue| self.room.get_mut(queue)) {
            *room -= 1;
        }
        self.find_head(state, group);
    }
}

/// How many tasks a claim asks for from each queue at the most.
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
