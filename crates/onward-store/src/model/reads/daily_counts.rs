//! The numbers of ended tasks by day.

use std::collections::BTreeMap;

use crate::api::history::QueueDay;
use crate::api::name::Name;
use crate::api::store::EndedCounts;
use crate::api::task::TaskState;
use crate::api::timestamp::Timestamp;
use crate::bounds::HISTORY_DAYS;
use crate::model::state::State;
use crate::rules::history::{beginning, counted_on, first_day};

/// The counts of ends by day and queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct DailyCounts {
    pub(crate) days: BTreeMap<(i64, Name), EndedCounts>,
}

impl DailyCounts {
    /// Returns the last day that has an end. Days never go back, even if the clock does.
    pub(crate) fn latest(&self) -> Option<i64> {
        self.days.last_key_value().map(|((day, _), _)| *day)
    }

    /// Counts an end, and forgets days that can no longer be read.
    pub(in crate::model) fn count(&mut self, queue: &Name, state: TaskState, now: Timestamp) {
        let day = counted_on(now, self.latest());
        let first = first_day(now, self.latest(), HISTORY_DAYS);
        if let Some(count) = self.days.entry((day, queue.clone())).or_default().of(state) {
            *count += 1;
        }
        self.days.retain(|(day, _), _| *day >= first);
    }
}

impl State {
    /// Returns the ends of the last `days` days, by day and queue.
    pub(crate) fn history(&self, now: Timestamp, days: u32) -> Vec<QueueDay> {
        let first = first_day(now, self.daily_counts.latest(), days);
        let kept = self.daily_counts.days.iter().filter(|((day, _), _)| *day >= first);
        kept.map(|((day, queue), ended)| QueueDay { day: beginning(*day), queue: queue.clone(), ended: *ended })
            .collect()
    }
}
