//! A part of a store, and what writes do to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::decision::{Decision, Written};
use super::difference::{Difference, KeyRow};
use super::items::Items;
use super::row::{Links, LoadedTask, set_messages};
use crate::api::aggregate::{CollectionRecord, CollectionSelection};
use crate::api::error::Result;
use crate::api::limit::LimitRecord;
use crate::api::name::Name;
use crate::api::news::TaskNews;
use crate::api::outcome::Outcome;
use crate::api::queue::QueueMode;
use crate::api::reason::WaitReason;
use crate::api::schedule::{ScheduleRecord, ScheduleSelection};
use crate::api::store::{EndedCounts, Hint, PauseRecord, QueueRecord, SessionRecord};
use crate::api::task::{TaskId, TaskRecord, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::{Claim, Write};
use crate::bounds;
use crate::memory::keys::Taken;
use crate::memory::known::{Frontier, Holders, Known, Lane, MoreWaiting, Part, RunningRows, Want};
use crate::memory::running::{RunningCounts, RunningLine};
use crate::memory::state::{Moment, State};
use crate::memory::task::Task;
use crate::rules::order::Place;

/// The numbers given last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) last_task: i64,
    pub(crate) last_session: i64,
    pub(crate) ends: i64,
    pub(crate) last_entry: i64,
}

/// Wall time and steady time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) wall: Timestamp,
    pub(crate) steady: Duration,
}

/// Waiting tasks by lane, in each by their places, at most `limit` of a lane.
#[derive(Debug)]
pub(crate) struct LaneRows {
    pub(crate) tasks: Vec<LoadedTask>,
    pub(crate) limit: usize,
}

/// A lane of which nothing is loaded: what its tasks have in common, and the place of the first.
#[derive(Debug)]
pub(crate) struct LaneHead {
    pub(crate) lane: Lane,
    pub(crate) place: Place,
}

/// What is loaded of a store, as it is there.
#[derive(Debug)]
pub(crate) struct Partial {
    state: State,
    /// How many tasks run in the store.
    running: Option<RunningCounts>,
    /// How many have ended in the store that did not say how long they are kept, if somebody asked.
    ended: Option<u64>,
    /// How many live tasks queues have in the store.
    live: BTreeMap<Name, u64>,
    /// What was taken since somebody asked for that to be noted.
    noted: Option<Noted>,
}

/// What was loaded while writes were being decided.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) tasks: Vec<Arc<Task>>,
    /// Their keys.
    pub(super) keys: Vec<((Name, String), Taken)>,
    /// Whether there is more to it than tasks that have to do with nothing else: what was decided
    /// before may have looked for that.
    pub(super) is_linked: bool,
}

/// What writes did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) outcomes: Vec<Vec<Outcome>>,
    pub(crate) hint: Hint,
    pub(crate) news: Vec<TaskNews>,
    pub(super) stamp: i64,
    pub(super) log: Vec<(i64, i64, String)>,
    pub(super) forget_before: i64,
    pub(super) after: State,
}

/// What was asked for, or what is to be loaded before it can be answered.
pub(crate) type Answered<T> = std::result::Result<T, BTreeSet<Want>>;

impl Partial {
    /// Of a store with these numbers, one queue of the latest day on which a task ended, and
    /// everything that is not a task.
    pub(crate) fn new(
        counters: Counters,
        latest: Option<(i64, String)>,
        payload_limit: usize,
        items: Items,
    ) -> Result<Self> {
        let part = Part { last_task: counters.last_task, ..Part::default() };
        let mut state = State {
            payload_limit,
            last_task: counters.last_task,
            last_session: counters.last_session,
            ends: counters.ends.cast_unsigned(),
            entry: counters.last_entry + 1,
            ..items.into_state()
        };
        state.tasks.known = Known::of(part);
        if let Some((day, queue)) = latest {
            state.history.days.insert((day, Name::new(queue)?), EndedCounts::default());
        }
        Ok(Self { state, running: None, ended: None, live: BTreeMap::new(), noted: None })
    }

    /// Takes a task, unless it is here already.
    pub(crate) fn task(&mut self, LoadedTask { task, links }: LoadedTask) -> TaskId {
        let id = task.id;
        if self.state.tasks.share(id).is_some() {
            return id;
        }
        let links = links.map_or_else(Links::default, |links| *links);
        if let Some(noted) = &mut self.noted {
            noted.tasks.push(Arc::clone(&task));
            noted.is_linked |= links.is_linked();
        }
        if let (Some(unique), Some((by, until))) = (&task.new.unique, links.key) {
            let until = until.map(Timestamp::from_microseconds);
            self.take_key((task.new.kind.clone(), unique.key.clone()), Taken { by: TaskId(by), until });
        }
        let key = task.new.unique.as_ref().map(|unique| (task.new.kind.clone(), unique.key.clone()));
        links.waits_for.iter().for_each(|on| self.state.waits.add(TaskId(*on), id));
        links.dependents.iter().for_each(|dependent| self.state.waits.add(id, TaskId(*dependent)));
        links.bundle.into_iter().for_each(|bundle| self.state.bundles.adopt(TaskId(bundle), id));
        links.members.iter().for_each(|member| self.state.bundles.adopt(id, TaskId(*member)));
        self.state.tasks.insert_shared(task);
        self.part(|part| {
            part.tasks.insert(id);
            part.keys.extend(key);
            if !links.has_children {
                part.children.insert(id);
            }
        });
        id
    }

    fn take_key(&mut self, key: (Name, String), taken: Taken) {
        let is_known = self.state.tasks.known.part().is_some_and(|part| part.keys.contains(&key));
        if let Some(noted) = self.noted.as_mut().filter(|_| !is_known && !self.state.keys.taken.contains_key(&key)) {
            noted.keys.push((key.clone(), taken));
        }
        self.state.keys.taken.insert(key, taken);
    }

    /// Takes a task that runs, and that has nothing to do with others, unless it is here already.
    pub(super) fn kept(&mut self, task: Arc<Task>) {
        let id = task.id;
        if self.state.tasks.share(id).is_some() {
            return;
        }
        let key = task.new.unique.as_ref().map(|unique| (task.new.kind.clone(), unique.key.clone()));
        key.iter().for_each(|key| self.take_key(key.clone(), Taken { by: id, until: None }));
        if let Some(noted) = &mut self.noted {
            noted.tasks.push(Arc::clone(&task));
        }
        self.state.tasks.insert_shared(task);
        self.part(|part| {
            part.tasks.insert(id);
            part.children.insert(id);
            part.keys.extend(key);
        });
    }

    /// Whether all that waits is loaded, if anybody asked for what waits.
    pub(crate) fn few_wait(&self) -> Option<bool> {
        self.state.tasks.known.part()?.lanes.as_ref().map(MoreWaiting::is_empty)
    }

    /// Notes from now on what is loaded.
    pub(crate) fn note(&mut self) {
        self.noted = Some(Noted::default());
    }

    /// What was loaded since then.
    pub(super) fn take_noted(&mut self) -> Noted {
        self.noted.take().unwrap_or_default()
    }

    /// Notes that more was loaded than tasks.
    fn note_links(&mut self) {
        self.noted.iter_mut().for_each(|noted| noted.is_linked = true);
    }

    /// What is loaded, as it was.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// How many tasks ran in the store, if somebody asked.
    pub(super) fn running_in_store(&self) -> Option<&RunningCounts> {
        self.running.as_ref()
    }

    /// Takes the first messages that wait for an orchestration; `are_all` if there are no more.
    pub(crate) fn messages(&mut self, id: TaskId, messages: &[Vec<u8>], are_all: bool) -> Result<()> {
        let mut outcome = Ok(());
        self.note_links();
        self.state.tasks.change(id, |task| outcome = set_messages(task, messages));
        if are_all {
            self.part(|part| {
                part.messages.insert(id);
            });
        }
        outcome
    }

    fn part(&mut self, change: impl FnOnce(&mut Part)) {
        if let Some(part) = self.state.tasks.known.part_mut() {
            change(part);
        }
    }

    /// Notes that tasks were looked for by their numbers, with these links of those that are gone.
    pub(crate) fn looked_for(&mut self, ids: &[i64], waits: &[(i64, i64)], members: &[(i64, i64)]) {
        self.note_links();
        waits.iter().for_each(|(on, dependent)| self.state.waits.add(TaskId(*on), TaskId(*dependent)));
        members.iter().for_each(|(member, bundle)| self.state.bundles.adopt(TaskId(*bundle), TaskId(*member)));
        self.part(|part| part.tasks.extend(ids.iter().copied().map(TaskId)));
    }

    /// Notes that everything that a want asks for is here.
    pub(crate) fn known(&mut self, want: Want) {
        self.part(|part| match want {
            Want::Key(kind, key) => drop(part.keys.insert((kind, key))),
            Want::Children(parent) => drop(part.children.insert(parent)),
            Want::Held(session) => drop(part.held.insert(session)),
            Want::ToCancel(session) => drop(part.to_cancel.insert(session)),
            Want::Between(from, before) => drop(part.between.insert((from, before))),
            _ => {}
        });
    }

    pub(crate) fn key(&mut self, row: KeyRow) -> Result<()> {
        self.note_links();
        let key =
            String::from_utf8(row.key).map_err(|_| crate::Error::corrupt("a key is not text; restore a backup"))?;
        let taken = Taken { by: TaskId(row.task), until: row.until.map(Timestamp::from_microseconds) };
        self.state.keys.taken.insert((Name::new(row.kind)?, key), taken);
        Ok(())
    }

    /// Takes how many tasks run by session, queue, kind and group.
    pub(crate) fn running(&mut self, running: &RunningRows) {
        self.running = Some(counted(running));
    }

    /// Takes how many tasks run, as it was counted before.
    pub(super) fn running_as_kept(&mut self, running: RunningCounts) {
        self.running = Some(running);
    }

    /// Takes which sessions run any.
    pub(crate) fn holders(&mut self, holders: Holders) {
        self.part(|part| part.holders = Some(holders));
    }

    pub(crate) fn live(&mut self, queue: Name, count: u64) {
        self.live.insert(queue, count);
    }

    /// Takes everything that waits.
    pub(crate) fn all_waiting(&mut self, tasks: Vec<LoadedTask>) {
        for task in tasks {
            self.task(task);
        }
        self.part(|part| part.lanes = Some(MoreWaiting::default()));
    }

    /// Takes the first tasks of lanes, and those lanes of which there are none: of the others of
    /// their queue and kind everything is here up to the first of these.
    pub(crate) fn lanes(&mut self, lanes: LaneRows, heads: Vec<LaneHead>) {
        let mut bounds: BTreeMap<(Name, Name), Place> = BTreeMap::new();
        for LaneHead { lane, place } in &heads {
            let bound = bounds.entry((lane.queue.clone(), lane.kind.clone())).or_insert(*place);
            *bound = (*bound).min(*place);
        }
        let mut found: BTreeMap<Lane, Vec<TaskId>> = BTreeMap::new();
        for task in lanes.tasks {
            let id = self.task(task);
            let lane = self.state.tasks.get(id).map(Lane::of);
            lane.into_iter().for_each(|lane| found.entry(lane).or_default().push(id));
        }
        let more = found.into_iter().filter_map(|(lane, tasks)| {
            let last = self.state.tasks.share(*tasks.last()?)?;
            let is_full = tasks.len() >= lanes.limit;
            let bound = || bounds.get(&(lane.queue.clone(), lane.kind.clone())).copied();
            let behind = if is_full { last.place() } else { bound()? };
            Some((lane, (behind, Arc::clone(last))))
        });
        let mut more: BTreeMap<_, _> = more.collect();
        more.extend(heads.into_iter().map(|LaneHead { lane, place }| {
            let task = Arc::new(lane.task(place.task));
            (lane, (place, task))
        }));
        self.part(|part| part.lanes = Some(MoreWaiting::of(more)));
    }

    /// Takes the first tasks of one lane.
    pub(crate) fn lane(&mut self, lane: &Lane, rows: LaneRows) {
        let count = rows.tasks.len();
        let last = rows.tasks.into_iter().map(|task| self.task(task)).last();
        let last = last.filter(|_| count >= rows.limit).and_then(|last| self.state.tasks.share(last)).cloned();
        self.part(|part| {
            part.lanes.get_or_insert_default().set(lane, last.map(|last| (last.place(), last)));
        });
    }

    /// Takes the first `limit` tasks of an order.
    pub(crate) fn order(&mut self, want: &Want, tasks: Vec<LoadedTask>, limit: usize) {
        let is_all = tasks.len() < limit;
        let last = tasks.into_iter().map(|task| self.task(task)).last();
        let last = last.filter(|_| !is_all).and_then(|last| self.state.tasks.share(last)).cloned();
        self.part(|part| match want {
            Want::Scheduled => part.scheduled = frontier(last, |task| Some((task.run_at, task.id))),
            Want::Expiring => part.expiring = frontier(last, |task| Some((task.expires_at?, task.id))),
            Want::Overdue => part.overdue = frontier(last, |task| Some((task.must_be_finished_by()?, task.id))),
            Want::Ended => part.ended = frontier(last, |task| Some((task.end?, task.id))),
            Want::Retained => part.retained = frontier(last, |task| Some((task.retained_until()?, task.id))),
            Want::OfQueue(queue, states) => {
                let frontier = frontier(last, |task| Some(task.id));
                part.of_queue.insert((queue.clone(), states.clone()), frontier);
            }
            _ => {}
        });
    }

    pub(crate) fn ended(&mut self, count: u64) {
        self.ended = Some(count);
    }

    /// Works out what of the counts is not loaded, after everything of a round was taken.
    pub(crate) fn settle(&mut self) {
        let running = self.running.clone().map(|mut running| {
            running.take_all(self.state.tasks.running_here());
            running
        });
        let count =
            |is_counted: &dyn Fn(&Task) -> bool| self.state.tasks.iter().filter(|task| is_counted(task)).count() as u64;
        let is_of_ended = |task: &Task| task.state.is_ended() && task.new.retention.is_none();
        let ended = self.ended.map(|ended| ended.saturating_sub(count(&is_of_ended)));
        let live = self.live.iter().map(|(queue, live)| {
            let here = count(&|task| task.new.queue == *queue && !task.state.is_ended());
            (queue.clone(), live.saturating_sub(here))
        });
        let live = live.collect();
        let sessions: Vec<_> = self.state.sessions.keys().copied().collect();
        self.part(|part| {
            if let Some(running) = &running {
                let is_here = |id: &crate::api::task::SessionId| running.by(*id) == 0;
                part.held.extend(sessions.into_iter().filter(is_here));
            }
            part.running = running;
            (part.ended_elsewhere, part.live_elsewhere) = (ended, live);
        });
    }

    /// Decides calls, one after another.
    #[cfg(test)]
    pub(crate) fn run(&self, calls: &[&[Write]], now: Now) -> Result<Answered<Ran>> {
        let mut decision = self.decision(now);
        while decision.advance(calls, usize::MAX)? {}
        Ok(decision.end(self))
    }

    /// Begins to decide calls.
    pub(crate) fn decision(&self, now: Now) -> Decision {
        Decision::new(&self.state, now)
    }

    /// Whether anything was looked for that is not loaded.
    pub(crate) fn wants_anything(&self) -> bool {
        self.state.tasks.known.wants_anything()
    }

    pub(super) fn take_wants(&self) -> BTreeSet<Want> {
        self.state.tasks.known.take_wants()
    }

    /// What writes have changed, but for what was written of it already.
    pub(crate) fn difference(&self, ran: &mut Ran, written: &Written) -> Result<Difference> {
        let mut difference = Difference::between(&self.state, &ran.after, written)?;
        difference.log = std::mem::take(&mut ran.log);
        difference.forget_before = ran.forget_before;
        Ok(difference)
    }

    /// The [stamp](Ran::stamp) of the store as it was loaded.
    pub(crate) fn stamp(&self) -> i64 {
        stamp(&self.state)
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> Answered<T> {
        let answer = look(&self.state);
        let wants = self.state.tasks.known.take_wants();
        if wants.is_empty() { Ok(answer) } else { Err(wants) }
    }

    pub(crate) fn record(&self, task: TaskId) -> Answered<Option<TaskRecord>> {
        self.look(|state| state.record(task))
    }

    /// Tasks in an order, without what only one that is asked for by itself shows.
    pub(crate) fn records(&self, tasks: &[TaskId], with_payload: bool) -> Answered<Vec<TaskRecord>> {
        let record = |state: &State, id: &TaskId| state.tasks.get(*id).map(|task| state.record_of(task, with_payload));
        self.look(|state| tasks.iter().filter_map(|id| record(state, id)).collect())
    }

    pub(crate) fn why(&mut self, task: TaskId, now: Now) -> Answered<Option<Vec<WaitReason>>> {
        let now = Moment { wall: now.wall, steady: now.steady };
        self.state.now = now;
        self.look(|state| state.why(task, now))
    }

    pub(crate) fn peek(&mut self, claim: &Claim, now: Now) -> Answered<Option<TaskRecord>> {
        let now = Moment { wall: now.wall, steady: now.steady };
        self.state.now = now;
        self.look(|state| state.peek(claim, now))
    }

    pub(crate) fn limits(&self, now: Now) -> Answered<Vec<LimitRecord>> {
        self.look(|state| state.limit_records(now.steady))
    }

    pub(crate) fn sessions(&self) -> Answered<Vec<SessionRecord>> {
        self.look(State::session_records)
    }

    pub(crate) fn pauses(&self, now: Now) -> Vec<PauseRecord> {
        self.state.pause_records(now.wall)
    }

    pub(crate) fn collections(&self, which: &CollectionSelection) -> Vec<CollectionRecord> {
        self.state.collection_records(which)
    }

    pub(crate) fn mode(&self) -> QueueMode {
        self.state.mode
    }

    pub(crate) fn schedules(&self, which: &ScheduleSelection) -> Vec<ScheduleRecord> {
        self.state.schedules.select(which)
    }

    /// The queues, as if they were empty.
    pub(crate) fn queues(&self, now: Now) -> BTreeMap<Name, QueueRecord> {
        self.state.queues.iter().map(|queue| (queue.clone(), self.state.empty_queue(queue, now.wall))).collect()
    }
}

impl Ran {
    /// What was loaded, as it is after the writes.
    pub(super) fn after(&self) -> &State {
        &self.after
    }

    /// One queue of the latest day on which a task has ended.
    pub(crate) fn latest_day(&self) -> Option<(i64, String)> {
        let ((day, queue), _) = self.after.history.days.last_key_value()?;
        Some((*day, queue.to_string()))
    }

    /// Everything that is not a task, as it is after the writes. Takes it out of this.
    pub(crate) fn items(&mut self) -> Items {
        Items::left_by(std::mem::take(&mut self.after))
    }

    /// A number that is another one after every write that changes a task.
    pub(crate) fn stamp(&self) -> i64 {
        self.stamp
    }
}

fn counted(running: &RunningRows) -> RunningCounts {
    let mut counts = RunningCounts::default();
    for ((session, queue, kind, group), count) in running {
        counts.add(RunningLine { session: Some(*session), queue, kind, group: group.as_ref() }, *count);
    }
    counts
}

pub(super) fn stamp(state: &State) -> i64 {
    state.entry - 1 + state.last_task
}

fn frontier<K>(last: Option<Arc<Task>>, place: impl FnOnce(&Task) -> Option<K>) -> Frontier<K> {
    last.and_then(|last| place(&last)).map_or(Frontier::End, Frontier::UpTo)
}

/// How many tasks claims among writes ask for together.
pub(crate) fn claimed_by(writes: &[Write]) -> usize {
    let one = |write: &Write| match write {
        Write::Claim(claim) => claim.limit.min(bounds::CLAIM),
        Write::All(writes) => claimed_by(writes),
        Write::Prune(prune) => prune.limit,
        Write::Purge { limit, .. } => *limit,
        _ => 0,
    };
    writes.iter().map(one).fold(0, usize::saturating_add)
}

/// The states that a number stands for.
pub(crate) fn state_of(code: i16) -> Option<TaskState> {
    TaskState::from_code(code.into())
}
