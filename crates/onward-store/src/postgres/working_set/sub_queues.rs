//! What of the sub-queues is loaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::name::Name;
use crate::api::task::TaskId;
use crate::model::{PartialSubQueues, SubQueue};
use crate::postgres::working_set::contents::WorkingSet;
use crate::postgres::working_set::task_row::LoadedTask;
use crate::rules::order::Place;

/// Waiting tasks by lane, in each by their places, at most `limit` of a lane.
#[derive(Debug)]
pub(in crate::postgres) struct SubQueueRows {
    pub(crate) tasks: Vec<LoadedTask>,
    pub(crate) limit: usize,
}

/// A lane of which nothing is loaded: what its tasks have in common, and the place of the first.
#[derive(Debug)]
pub(in crate::postgres) struct SubQueueHead {
    pub(crate) lane: SubQueue,
    pub(crate) place: Place,
}

impl WorkingSet {
    /// Whether all that waits is loaded, if anybody asked for what waits.
    pub(in crate::postgres) fn few_wait(&self) -> Option<bool> {
        self.state.tasks.known.part()?.lanes.as_ref().map(PartialSubQueues::is_empty)
    }

    /// Takes everything that waits.
    pub(in crate::postgres) fn all_waiting(&mut self, tasks: Vec<LoadedTask>) {
        for task in tasks {
            self.task(task);
        }
        self.part(|part| part.lanes = Some(PartialSubQueues::default()));
    }

    /// Takes the first tasks of lanes, and those lanes of which there are none: of the others of
    /// their queue and kind everything is here up to the first of these.
    pub(crate) fn lanes(&mut self, lanes: SubQueueRows, heads: Vec<SubQueueHead>) {
        let mut bounds: BTreeMap<(Name, Name), Place> = BTreeMap::new();
        for SubQueueHead { lane, place } in &heads {
            let bound = bounds.entry((lane.queue.clone(), lane.kind.clone())).or_insert(*place);
            *bound = (*bound).min(*place);
        }
        let mut found: BTreeMap<SubQueue, Vec<TaskId>> = BTreeMap::new();
        for task in lanes.tasks {
            let id = self.task(task);
            let lane = self.state.tasks.get(id).map(SubQueue::of);
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
        more.extend(heads.into_iter().map(|SubQueueHead { lane, place }| {
            let task = Arc::new(lane.task(place.task));
            (lane, (place, task))
        }));
        self.part(|part| part.lanes = Some(PartialSubQueues::of(more)));
    }

    /// Takes the first tasks of one lane.
    pub(crate) fn lane(&mut self, lane: &SubQueue, rows: SubQueueRows) {
        let count = rows.tasks.len();
        let last = rows.tasks.into_iter().map(|task| self.task(task)).last();
        let last = last.filter(|_| count >= rows.limit).and_then(|last| self.state.tasks.share(last)).cloned();
        self.part(|part| {
            part.lanes.get_or_insert_default().set(lane, last.map(|last| (last.place(), last)));
        });
    }
}
