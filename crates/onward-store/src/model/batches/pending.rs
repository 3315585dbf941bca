//! Tasks that are collected until they are handed over as one.

use std::collections::BTreeSet;

use crate::api::aggregate::{CollectionRecord, CollectionSelection};
use crate::api::event::Change;
use crate::api::name::Name;
use crate::api::task::{NewTask, TaskId};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::model::batches::index::BatchKey;
use crate::model::batches::index::batch_key_of;
use crate::model::state::State;
use crate::model::tasks::task::Task;
use crate::rules::aggregate::{self, Collection, MemberFacts};

impl State {
    /// Has a task that is to be collected join those of its queue, kind and group.
    pub(in crate::model) fn collect(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(id).filter(|task| !task.state.is_ended()) else { return };
        let Some(aggregate) = task.new.aggregate else { return };
        let (key, bytes, now) = (batch_key_of(&task.new), bytes_of(&task.new), self.now.wall);
        let has_room = |(collection, _): &(Collection, _)| collection.has_room_for(bytes);
        if !self.bundles.collections.get(&key).is_none_or(has_room) {
            self.hand_over(&key);
        }
        let (before, mut members) =
            self.bundles.collections.remove(&key).map_or((None, BTreeSet::new()), |(before, of)| (Some(before), of));
        members.insert(id);
        let collection = Collection::joined(before, id, aggregate, bytes, now);
        self.bundles.collections.insert(key.clone(), (collection, members));
        if collection.is_full() {
            self.hand_over(&key);
        }
    }

    /// Makes a bundle of what is collected; answers how many members it has.
    fn hand_over(&mut self, key: &BatchKey) -> usize {
        let Some((_, members)) = self.bundles.collections.remove(key) else { return 0 };
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
    pub(in crate::model) fn hand_over_ripe(&mut self) -> u64 {
        let now = self.now.wall;
        let ripe = self.bundles.collections.iter().filter(|(_, (collection, _))| collection.ripe_at <= now);
        let place = |collection: &Collection| (collection.ripe_at, collection.began_with);
        let mut ripe: Vec<_> = ripe.map(|(key, (collection, _))| (place(collection), key.clone())).collect();
        ripe.sort_unstable();
        let (mut bundles, mut members) = (0, 0);
        for (_, key) in ripe {
            if members >= bounds::SWEEP {
                break;
            }
            members += self.hand_over(&key);
            bundles += 1;
        }
        bundles
    }

    /// When something is handed over if nothing more comes.
    pub(in crate::model) fn next_ripe(&self) -> Option<Timestamp> {
        self.bundles.collections.values().map(|(collection, _)| collection.ripe_at).min()
    }

    pub(in crate::model) fn leave_collection(&mut self, id: TaskId, new: &NewTask) {
        let key = batch_key_of(new);
        let Some((collection, members)) = self.bundles.collections.get_mut(&key) else { return };
        if !members.remove(&id) {
            return;
        }
        match collection.left(bytes_of(new)) {
            Some(left) => *collection = left,
            None => drop(self.bundles.collections.remove(&key)),
        }
    }

    /// What is being collected, what is handed over next first.
    pub(crate) fn collection_records(&self, which: &CollectionSelection) -> Vec<CollectionRecord> {
        let is_wanted = |queue: &Name| which.queue.as_ref().is_none_or(|wanted| wanted == queue);
        let mut found: Vec<_> = self.bundles.collections.iter().filter(|((queue, ..), _)| is_wanted(queue)).collect();
        found.sort_unstable_by_key(|(_, (collection, _))| (collection.ripe_at, collection.began_with));
        let record = |(key, (collection, _)): (&BatchKey, &(Collection, _))| {
            let (queue, kind, group) = key.clone();
            let Collection { members, size, bytes: payload_bytes, began_at, ripe_at, .. } = *collection;
            CollectionRecord { queue, kind, group, members, size, payload_bytes, began_at, ripe_at }
        };
        found.into_iter().take(which.limit.clamp(1, bounds::PAGE)).map(record).collect()
    }

    /// Whether a task is being collected.
    pub(in crate::model) fn is_collected(&self, task: &Task) -> bool {
        let is_live = !task.state.is_ended();
        is_live && task.new.aggregate.is_some() && self.bundles.bundle_of(task.id).is_none()
    }

    /// Takes a task out of what is collected, to be collected elsewhere.
    pub(in crate::model) fn stop_collecting(&mut self, id: TaskId) {
        if let Some(new) = self.tasks.get(id).map(|task| task.new.clone()) {
            self.leave_collection(id, &new);
        }
    }
}

fn facts(member: &Task) -> MemberFacts {
    let NewTask { priority, timeout, heartbeat_timeout, retention, retry, io, .. } = member.new;
    MemberFacts { priority, timeout, heartbeat_timeout, retention, retry, io }
}

fn bytes_of(new: &NewTask) -> u64 {
    new.payload.len() as u64
}
