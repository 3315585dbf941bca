//! Sub-queues of which more waits than is loaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::tasks::sub_queue::SubQueue;
use crate::model::tasks::task::Task;
use crate::rules::order::Place;

/// Lanes of which more waits than is loaded: behind which place, and a task as all of the lane are.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartialSubQueues {
    lanes: BTreeMap<SubQueue, (Place, Arc<Task>)>,
    /// The first of the places.
    pub(in crate::model) first: Option<Place>,
}

impl PartialSubQueues {
    #[cfg(feature = "postgres")]
    pub(crate) fn of(lanes: BTreeMap<SubQueue, (Place, Arc<Task>)>) -> Self {
        let first = lanes.values().map(|(place, _)| *place).min();
        Self { lanes, first }
    }

    /// Of one lane no more waits, or more behind a place.
    #[cfg(feature = "postgres")]
    pub(crate) fn set(&mut self, lane: &SubQueue, more: Option<(Place, Arc<Task>)>) {
        let mut lanes = std::mem::take(&mut self.lanes);
        match more {
            Some(more) => drop(lanes.insert(lane.clone(), more)),
            None => drop(lanes.remove(lane)),
        }
        *self = Self::of(lanes);
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(in crate::model) fn iter(&self) -> impl Iterator<Item = (&SubQueue, Place, &Task)> {
        self.lanes.iter().map(|(lane, (place, task))| (lane, *place, &**task))
    }
}
