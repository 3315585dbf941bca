//! What a writer keeps of the tasks that run and wait, so that what claims and finishes them need not be loaded again: as long as nobody else writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::run::{Partial, Ran};
use crate::limits;
use crate::memory::known::{RunningElsewhere, Want};
use crate::memory::state::State;
use crate::memory::task::Task;
use crate::name::Name;
use crate::task::{SessionId, TaskId, TaskState};

/// Tasks that run, or wait, and have nothing to do with others: nobody waits for them, they wait for nobody, are in no bundle and have no children; and
/// how many run in all. It is brought up to date with what each batch changes, and is of no use once somebody else has changed anything.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    tasks: HashMap<TaskId, Arc<Task>>,
    /// Those of them that wait, if these are all that wait.
    waiting: Option<BTreeSet<TaskId>>,
    /// Those of them that have a key, by that.
    keys: HashMap<(Name, String), TaskId>,
    /// How many of them each session runs.
    held: BTreeMap<SessionId, u64>,
    /// How many tasks run in the store, as far as anybody has asked.
    running: Option<RunningElsewhere>,
}

impl Kept {
    /// Whether what is wanted need not be loaded, for claims of so many tasks.
    pub(crate) fn has(&self, want: &Want, claimed: usize) -> bool {
        match want {
            // Where many more wait than are claimed, it is less work to read the first.
            Want::Lanes => {
                let most = claimed.saturating_mul(4).saturating_add(64);
                self.waiting.as_ref().is_some_and(|waiting| waiting.len() <= most)
            }
            Want::Task(id) => self.tasks.contains_key(id),
            Want::Running => self.running.is_some(),
            Want::ToCancel(session) => self.has_all_of(*session),
            _ => false,
        }
    }

    /// Whether everything that a session runs is here.
    fn has_all_of(&self, session: SessionId) -> bool {
        let Some(running) = &self.running else { return false };
        let run: u64 = running.iter().filter(|((by, ..), _)| *by == session).map(|(_, count)| count).sum();
        self.held.get(&session).copied().unwrap_or_default() == run
    }

    /// Gives what is wanted and [here](Self::has) to a part of the store.
    pub(crate) fn give(&self, wants: &BTreeSet<Want>, partial: &mut Partial) {
        for want in wants {
            match want {
                Want::Task(id) => self.tasks.get(id).into_iter().for_each(|task| partial.kept(Arc::clone(task))),
                Want::Running => self.running.iter().for_each(|running| partial.running(running.clone())),
                Want::Lanes => {
                    let waiting = self.waiting.iter().flatten().filter_map(|id| self.tasks.get(id));
                    waiting.for_each(|task| partial.kept(Arc::clone(task)));
                    partial.known(Want::Lanes);
                }
                // Who is to stop is not kept.
                Want::ToCancel(_) => partial.known(want.clone()),
                _ => {}
            }
        }
        partial.settle();
    }

    /// Follows what a batch has changed.
    pub(crate) fn follow(&mut self, partial: &Partial, ran: &Ran) {
        let (before, after) = (partial.state(), ran.after());
        self.count(partial, before, after);
        match partial.few_wait() {
            // All that waits is loaded, and looked at below.
            Some(true) => self.waiting = Some(BTreeSet::new()),
            Some(false) => self.forget_waiting(),
            // Nobody has asked: what is here is all that waits if it was.
            None => {}
        }
        for task in before.tasks.shared().chain(after.tasks.shared()) {
            self.forget(task.id);
        }
        self.forget_linked(before, after);
        let parents: BTreeSet<TaskId> = after.tasks.iter().filter_map(|task| task.new.parent).collect();
        for task in after.tasks.shared() {
            let (runs, waits) = (task.session.is_some(), task.state == TaskState::Waiting && self.waiting.is_some());
            let is_kept = (runs || waits) && !parents.contains(&task.id) && is_alone(after, task) && self.keep(task);
            if waits && !is_kept {
                self.forget_waiting();
            }
        }
    }

    fn count(&mut self, partial: &Partial, before: &State, after: &State) {
        let known = partial.running_in_store().cloned().or_else(|| self.running.take());
        self.running = known.map(|mut running| {
            for (line, many) in lines(before) {
                running.entry(line).and_modify(|count| *count = count.saturating_sub(many));
            }
            for (line, many) in lines(after) {
                *running.entry(line).or_default() += many;
            }
            running.retain(|_, count| *count > 0);
            running
        });
    }

    /// Who waits for a task, or is a member of one, may change where the task itself is not looked at.
    fn forget_linked(&mut self, before: &State, after: &State) {
        for state in [before, after] {
            for (one, other) in state.waits.dependents.iter().chain(&state.bundles.members) {
                self.forget_unloaded(*one);
                self.forget_unloaded(*other);
            }
            for key in state.keys.taken.keys() {
                if let Some(id) = self.keys.get(key).copied() {
                    self.forget_unloaded(id);
                }
            }
        }
        for parent in after.tasks.iter().filter_map(|task| task.new.parent) {
            self.forget_unloaded(parent);
        }
    }

    /// Forgets a task that is not looked at anew.
    fn forget_unloaded(&mut self, id: TaskId) {
        if self.waiting.as_ref().is_some_and(|waiting| waiting.contains(&id)) {
            self.forget_waiting();
        }
        self.forget(id);
    }

    /// Forgets what waits: it is not all.
    fn forget_waiting(&mut self) {
        for id in self.waiting.take().unwrap_or_default() {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: TaskId) {
        let Some(task) = self.tasks.remove(&id) else { return };
        if let Some(waiting) = &mut self.waiting {
            waiting.remove(&id);
        }
        if let Some(key) = key_of(&task) {
            self.keys.remove(&key);
        }
        if let Some(count) = task.session.and_then(|session| self.held.get_mut(&session)) {
            *count = count.saturating_sub(1);
        }
    }

    /// Keeps a task, if there is room; answers whether.
    fn keep(&mut self, task: &Arc<Task>) -> bool {
        if self.tasks.len() >= limits::KEPT_TASKS {
            return false;
        }
        self.keys.extend(key_of(task).map(|key| (key, task.id)));
        match (task.session, &mut self.waiting) {
            (Some(session), _) => *self.held.entry(session).or_default() += 1,
            (None, Some(waiting)) => drop(waiting.insert(task.id)),
            (None, None) => return false,
        }
        self.tasks.insert(task.id, Arc::clone(task));
        true
    }
}

/// How many of the tasks that are loaded run, by what they are counted by.
fn lines(state: &State) -> HashMap<Line, u64> {
    let mut lines = HashMap::new();
    // What follows one another is mostly of one line.
    let mut last: Option<(Line, u64)> = None;
    for (task, session) in state.tasks.iter().filter_map(|task| Some((task, task.session?))) {
        match &mut last {
            Some((line, many)) if is_of(line, task, session) => *many += 1,
            last => {
                if let Some((line, many)) = last.replace((line_of(task, session), 1)) {
                    *lines.entry(line).or_default() += many;
                }
            }
        }
    }
    if let Some((line, many)) = last {
        *lines.entry(line).or_default() += many;
    }
    lines
}

fn is_of((by, queue, kind, group): &Line, task: &Task, session: SessionId) -> bool {
    *by == session && *queue == task.new.queue && *kind == task.new.kind && *group == task.new.group
}

/// Session, queue, kind and group.
type Line = (SessionId, Name, Name, Option<Name>);

/// What a task that runs is counted by.
fn line_of(task: &Task, session: SessionId) -> Line {
    let new = &task.new;
    (session, new.queue.clone(), new.kind.clone(), new.group.clone())
}

fn key_of(task: &Task) -> Option<(Name, String)> {
    task.new.unique.as_ref().map(|unique| (task.new.kind.clone(), unique.key.clone()))
}

/// Whether a task that runs or waits has nothing to do with others, has its key itself, is not to stop, and is small.
fn is_alone(state: &State, task: &Task) -> bool {
    let id = task.id;
    let (first, last) = ((id, TaskId(i64::MIN)), (id, TaskId(i64::MAX)));
    let is_linked = state.waits.dependents.range(first..=last).next().is_some()
        || state.waits.open.range(first..=last).next().is_some()
        || state.bundles.members.range(first..=last).next().is_some()
        || state.bundles.bundle_of.contains_key(&id);
    let has_own_key = key_of(task)
        .is_none_or(|key| state.keys.taken.get(&key).is_some_and(|taken| taken.by == id && taken.until.is_none()));
    let is_childless =
        state.tasks.known.part().is_some_and(|part| id.0 > part.last_task || part.children.contains(&id));
    let bytes = task.new.payload.len() + task.memo.as_ref().map_or(0, bytes::Bytes::len);
    !is_linked
        && has_own_key
        && is_childless
        && !task.cancel_requested
        && task.instance.is_none()
        && bytes <= limits::KEPT_TASK_BYTES
}
