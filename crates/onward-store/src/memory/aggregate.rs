//! Tasks that are collected, and bundles of them.

use std::collections::{BTreeMap, BTreeSet};

use super::dependencies::Over;
use super::state::State;
use super::task::Task;
use crate::api::aggregate::{CollectionRecord, CollectionSelection};
use crate::api::event::Change;
use crate::api::name::Name;
use crate::api::news::TaskNews;
use crate::api::outcome::Refusal;
use crate::api::reason::WaitReason;
use crate::api::task::{NewTask, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::aggregate::{self, Collection, MemberFacts};

/// Queue, kind and group: what is collected together.
pub(crate) type Line = (Name, Name, Option<Name>);

/// What is being collected, and who is a member of which bundle.
#[derive(Debug, Clone, Default)]
pub(super) struct Bundles {
    pub(super) collections: BTreeMap<Line, (Collection, BTreeSet<TaskId>)>,
    pub(super) bundle_of: BTreeMap<TaskId, TaskId>,
    /// A bundle and a member, live or ended.
    pub(super) members: BTreeSet<(TaskId, TaskId)>,
}

impl Bundles {
    pub(super) fn bundle_of(&self, member: TaskId) -> Option<TaskId> {
        self.bundle_of.get(&member).copied()
    }

    pub(super) fn adopt(&mut self, bundle: TaskId, member: TaskId) {
        self.bundle_of.insert(member, bundle);
        self.members.insert((bundle, member));
    }

    /// A task is a member of its bundle no more.
    pub(super) fn forget(&mut self, member: TaskId) {
        if let Some(bundle) = self.bundle_of.remove(&member) {
            self.members.remove(&(bundle, member));
        }
    }

    /// The first member of a bundle from a number on.
    fn member_from(&self, bundle: TaskId, from: TaskId) -> Option<TaskId> {
        let next = self.members.range((bundle, from)..).next();
        next.filter(|(of, _)| *of == bundle).map(|(_, member)| *member)
    }

    fn members_of(&self, bundle: TaskId) -> Vec<TaskId> {
        let of = self.members.range((bundle, TaskId(i64::MIN))..=(bundle, TaskId(i64::MAX)));
        of.map(|(_, member)| *member).collect()
    }

    pub(super) fn has_members(&self, bundle: TaskId) -> bool {
        self.member_from(bundle, TaskId(i64::MIN)).is_some()
    }
}

fn line_of(new: &NewTask) -> Line {
    (new.queue.clone(), new.kind.clone(), new.group.clone())
}

fn bytes_of(new: &NewTask) -> u64 {
    new.payload.len() as u64
}

impl State {
    /// Has a task that is to be collected join those of its queue, kind and group.
    pub(super) fn collect(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(id).filter(|task| !task.state.is_ended()) else { return };
        let Some(aggregate) = task.new.aggregate else { return };
        let (line, bytes, now) = (line_of(&task.new), bytes_of(&task.new), self.now.wall);
        let has_room = |(collection, _): &(Collection, _)| collection.has_room_for(bytes);
        if !self.bundles.collections.get(&line).is_none_or(has_room) {
            self.hand_over(&line);
        }
        let (before, mut members) =
            self.bundles.collections.remove(&line).map_or((None, BTreeSet::new()), |(before, of)| (Some(before), of));
        members.insert(id);
        let collection = Collection::joined(before, id, aggregate, bytes, now);
        self.bundles.collections.insert(line.clone(), (collection, members));
        if collection.is_full() {
            self.hand_over(&line);
        }
    }

    /// Makes a bundle of what is collected; answers how many members it has.
    fn hand_over(&mut self, line: &Line) -> usize {
        let Some((_, members)) = self.bundles.collections.remove(line) else { return 0 };
        let tasks: Vec<&Task> = members.iter().filter_map(|member| self.tasks.get(*member)).collect();
        let Some(oldest) = tasks.first() else { return 0 };
        let mut new = NewTask::of(oldest.new.kind.clone());
        (new.queue, new.group) = (oldest.new.queue.clone(), oldest.new.group.clone());
        aggregate::adopt(&mut new, &tasks.into_iter().map(facts).collect::<Vec<_>>());
        let bundle = self.insert(new);
        self.tasks.change(bundle, |task| task.members = u32::try_from(members.len()).unwrap_or(u32::MAX));
        for member in &members {
            self.bundles.adopt(bundle, *member);
            self.log(*member, Change::Bundled { bundle });
        }
        members.len()
    }

    /// Hands over what it is time for, the longest overdue first; answers how many bundles.
    pub(super) fn hand_over_ripe(&mut self) -> u64 {
        let now = self.now.wall;
        let ripe = self.bundles.collections.iter().filter(|(_, (collection, _))| collection.ripe_at <= now);
        let place = |collection: &Collection| (collection.ripe_at, collection.began_with);
        let mut ripe: Vec<_> = ripe.map(|(line, (collection, _))| (place(collection), line.clone())).collect();
        ripe.sort_unstable();
        let (mut bundles, mut members) = (0, 0);
        for (_, line) in ripe {
            if members >= bounds::SWEEP {
                break;
            }
            members += self.hand_over(&line);
            bundles += 1;
        }
        bundles
    }

    /// When something is handed over if nothing more comes.
    pub(super) fn next_ripe(&self) -> Option<Timestamp> {
        self.bundles.collections.values().map(|(collection, _)| collection.ripe_at).min()
    }

    fn leave_collection(&mut self, id: TaskId, new: &NewTask) {
        let line = line_of(new);
        let Some((collection, members)) = self.bundles.collections.get_mut(&line) else { return };
        if !members.remove(&id) {
            return;
        }
        match collection.left(bytes_of(new)) {
            Some(left) => *collection = left,
            None => drop(self.bundles.collections.remove(&line)),
        }
    }

    /// A task that was to be collected has ended or was removed: it leaves what is being collected,
    /// or its bundle, unless it ended with that.
    pub(super) fn leave_bundle(&mut self, id: TaskId, new: &NewTask, is_removed: bool) {
        let Some(bundle) = self.bundles.bundle_of(id) else { return self.leave_collection(id, new) };
        let is_live = self.live_state(bundle).is_some();
        if is_live || is_removed {
            self.bundles.forget(id);
        }
        if is_live && !self.is_running(bundle) && !self.bundles.has_members(bundle) {
            let now = self.now.wall;
            self.tasks.change(bundle, |task| task.push_error_between(now, aggregate::EMPTIED.to_owned()));
            self.end(bundle, TaskState::Cancelled);
        }
    }

    fn live_state(&self, id: TaskId) -> Option<TaskState> {
        self.tasks.get(id).map(|task| task.state).filter(|state| !state.is_ended())
    }

    fn is_running(&self, id: TaskId) -> bool {
        self.live_state(id) == Some(TaskState::Running)
    }

    /// Where a task stands; a member runs while its bundle does.
    pub(super) fn standing_of(&self, task: &Task) -> TaskState {
        let bundle = self.bundles.bundle_of(task.id).filter(|_| !task.state.is_ended());
        if bundle.is_some_and(|bundle| self.is_running(bundle)) { TaskState::Running } else { task.state }
    }

    /// The bundle of a member, if that has not ended.
    pub(super) fn live_bundle_of(&self, member: TaskId) -> Option<&Task> {
        let bundle = self.tasks.get(self.bundles.bundle_of(member)?)?;
        (!bundle.state.is_ended()).then_some(bundle)
    }

    fn marked(&self, bundle: TaskId) -> Vec<TaskId> {
        let is_marked =
            |id: &TaskId| self.tasks.get(*id).is_some_and(|member| member.cancel_requested && !member.state.is_ended());
        self.bundles.members_of(bundle).into_iter().filter(is_marked).collect()
    }

    /// Whether somebody wants members of a bundle cancelled.
    pub(super) fn has_marked(&self, bundle: TaskId) -> bool {
        !self.marked(bundle).is_empty()
    }

    /// A bundle waits again: members that somebody wanted cancelled while it ran are taken out of
    /// it.
    pub(super) fn let_go(&mut self, bundle: TaskId) {
        for member in self.marked(bundle) {
            self.end(member, TaskState::Cancelled);
        }
    }

    /// Whether the time to live of a member is over for good; then it is forgotten.
    pub(super) fn outlives(&mut self, member: TaskId) -> bool {
        let started =
            self.live_bundle_of(member).is_some_and(|bundle| aggregate::has_started(bundle.state, bundle.attempts));
        if started {
            self.tasks.change(member, |task| task.expires_at = None);
        }
        started
    }

    /// The next member that is to end with a bundle that is over.
    pub(super) fn next_member(&self, over: Over) -> Option<TaskId> {
        self.bundles.member_from(over.task, over.next_member)
    }

    /// Ends a member with its bundle.
    pub(super) fn end_member(&mut self, member: TaskId, over: Over) {
        if self.live_state(member).is_none() {
            return;
        }
        let last_error = self.tasks.get(over.task).and_then(|bundle| bundle.errors.last());
        let last_error = last_error.map(|error| error.message.as_str());
        if let Some(error) = aggregate::error(over.task, over.ended, last_error) {
            let now = self.now.wall;
            self.tasks.change(member, |task| task.push_error_between(now, error));
        }
        self.end(member, aggregate::end_of_member(over.ended));
    }

    /// The members that wait again with a bundle that is tried again after its end: those that have
    /// ended.
    pub(super) fn members_to_retry(&self, bundle: &Task) -> Result<Vec<TaskId>, Refusal> {
        let members = self.bundles.members_of(bundle.id);
        if bundle.members > 0 && members.is_empty() {
            return Err(aggregate::without_members(bundle.id));
        }
        let ended: Vec<TaskId> = members.into_iter().filter(|member| self.live_state(*member).is_none()).collect();
        for member in &ended {
            let taken = self.tasks.get(*member).and_then(|member| self.keys.active(&member.new));
            if let Some(by) = taken {
                return Err(Refusal::KeyTaken { task: *member, by });
            }
        }
        Ok(ended)
    }

    /// Has what ended with a bundle wait with it again.
    pub(super) fn retry_members(&mut self, bundle: TaskId, members: Vec<TaskId>) {
        self.waits.keep_members(bundle);
        for member in members {
            let Some(new) = self.tasks.get(member).map(|task| task.new.clone()) else { continue };
            self.make_names(Some(&new.queue), None);
            self.keys.take(member, &new);
            self.start_anew(member);
            self.log(member, Change::Retried);
            self.news.push(TaskNews::Retried { task: member });
        }
    }

    /// What a task waits for that is collected with others, or was handed over with them.
    pub(super) fn why_aggregated(&self, task: &Task) -> Option<WaitReason> {
        task.new.aggregate.filter(|_| task.state == TaskState::Blocked)?;
        if let Some(bundle) = self.bundles.bundle_of(task.id) {
            return Some(WaitReason::InBundle { bundle });
        }
        let (collection, _) = self.bundles.collections.get(&line_of(&task.new))?;
        let Collection { members, size, ripe_at, .. } = *collection;
        Some(WaitReason::Collecting { members, size, ripe_at })
    }

    /// What is being collected, what is handed over next first.
    pub(super) fn collection_records(&self, which: &CollectionSelection) -> Vec<CollectionRecord> {
        let is_wanted = |queue: &Name| which.queue.as_ref().is_none_or(|wanted| wanted == queue);
        let mut found: Vec<_> = self.bundles.collections.iter().filter(|((queue, ..), _)| is_wanted(queue)).collect();
        found.sort_unstable_by_key(|(_, (collection, _))| (collection.ripe_at, collection.began_with));
        let record = |(line, (collection, _)): (&Line, &(Collection, _))| {
            let (queue, kind, group) = line.clone();
            let Collection { members, size, bytes: payload_bytes, began_at, ripe_at, .. } = *collection;
            CollectionRecord { queue, kind, group, members, size, payload_bytes, began_at, ripe_at }
        };
        found.into_iter().take(which.limit.clamp(1, bounds::PAGE)).map(record).collect()
    }

    /// Whether a task is being collected.
    pub(super) fn is_collected(&self, task: &Task) -> bool {
        let is_live = !task.state.is_ended();
        is_live && task.new.aggregate.is_some() && self.bundles.bundle_of(task.id).is_none()
    }

    /// Takes a task out of what is collected, to be collected elsewhere.
    pub(super) fn stop_collecting(&mut self, id: TaskId) {
        if let Some(new) = self.tasks.get(id).map(|task| task.new.clone()) {
            self.leave_collection(id, &new);
        }
    }
}

fn facts(member: &Task) -> MemberFacts {
    let NewTask { priority, timeout, heartbeat_timeout, retention, retry, io, .. } = member.new;
    MemberFacts { priority, timeout, heartbeat_timeout, retention, retry, io }
}
