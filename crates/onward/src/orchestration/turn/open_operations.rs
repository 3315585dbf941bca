//! The operations of an orchestration that have not ended, as its history has them. For code in
//! another process, waits for signals take no number.

use std::collections::{BTreeMap, BTreeSet};

use onward_store::Timestamp;

use crate::orchestration::replay::{HistoryEvent, first_operation};

/// The operations that have not ended.
#[derive(Debug, Default)]
pub(super) struct OpenOperations {
    tasks: BTreeSet<u64>,
    timers: BTreeMap<u64, Timestamp>,
    /// The highest number so far.
    last: u64,
}

impl OpenOperations {
    /// Returns the operations that are open after a history.
    ///
    /// # Errors
    /// A text, if the history has an event that only code in this process writes.
    pub(super) fn after(history: &[HistoryEvent], generation: u32) -> Result<Self, String> {
        let mut open = Self { last: first_operation(generation) - 1, ..Self::default() };
        for (place, event) in history.iter().enumerate() {
            open.apply(event).map_err(|what| {
                format!(
                    "event {place} of the history is {what}, which code in a worker cannot replay; continue it with the code that began it"
                )
            })?;
        }
        Ok(open)
    }

    fn apply(&mut self, event: &HistoryEvent) -> Result<(), &'static str> {
        match event {
            HistoryEvent::TaskSubmitted { operation, .. } => self.begin_task(*operation),
            HistoryEvent::TimerStarted { operation, until } => {
                self.begin_timer(*operation, Timestamp::from_microseconds(*until));
            }
            HistoryEvent::TaskEnded { operation, .. }
            | HistoryEvent::TimerFired { operation }
            | HistoryEvent::OperationCancelled { operation } => {
                self.end(*operation);
            }
            HistoryEvent::StepEnded { .. } => return Err("a step"),
            HistoryEvent::TaskDetached { .. } => return Err("a detached task"),
            HistoryEvent::Forked { .. } => return Err("a fork"),
            HistoryEvent::RepliesCarried { .. } => return Err("a reply to an update"),
            HistoryEvent::TagSet { .. } | HistoryEvent::TagRemoved { .. } => return Err("a tag"),
            HistoryEvent::Patched { .. } => return Err("a patch"),
            HistoryEvent::Started { .. }
            | HistoryEvent::TurnBegan { .. }
            | HistoryEvent::SignalReceived { .. }
            | HistoryEvent::SignalCarried { .. }
            | HistoryEvent::SignalsUnread { .. }
            | HistoryEvent::CancelRequested
            | HistoryEvent::CancelCarried => {}
        }
        Ok(())
    }

    /// Returns the number of the next operation.
    pub(super) fn next(&self) -> u64 {
        self.last + 1
    }

    pub(super) fn begin_task(&mut self, operation: u64) {
        self.last = operation;
        self.tasks.insert(operation);
    }

    pub(super) fn begin_timer(&mut self, operation: u64, until: Timestamp) {
        self.last = operation;
        self.timers.insert(operation, until);
    }

    /// Ends an operation, and returns false if it was not open.
    pub(super) fn end(&mut self, operation: u64) -> bool {
        self.tasks.remove(&operation) | self.timers.remove(&operation).is_some()
    }

    /// Returns true if the code waits for an arrival.
    pub(super) fn accepts(&self, event: &HistoryEvent) -> bool {
        match event {
            HistoryEvent::TaskEnded { operation, .. } => self.tasks.contains(operation),
            HistoryEvent::TimerFired { operation } => self.timers.contains_key(operation),
            _ => true,
        }
    }

    /// Returns the timers that are due at a time, in their order.
    pub(super) fn due(&self, now: Timestamp) -> Vec<u64> {
        let due = self.timers.iter().filter(|(_, until)| **until <= now);
        let mut due: Vec<_> = due.map(|(operation, until)| (*until, *operation)).collect();
        due.sort_unstable();
        due.into_iter().map(|(_, operation)| operation).collect()
    }

    /// Returns the time of the next timer.
    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        self.timers.values().min().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.timers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orchestration::replay::{StepEnd, TaskEnd};

    fn submitted(operation: u64) -> HistoryEvent {
        HistoryEvent::TaskSubmitted { operation, kind: "charge".into() }
    }

    fn ended(operation: u64) -> HistoryEvent {
        HistoryEvent::TaskEnded { operation, end: TaskEnd::Completed { result: None } }
    }

    #[test]
    fn an_operation_is_open_until_it_ends_or_is_cancelled() {
        let history = [
            submitted(1),
            submitted(2),
            HistoryEvent::TimerStarted { operation: 3, until: 7 },
            ended(1),
            HistoryEvent::OperationCancelled { operation: 2 },
        ];
        let open = OpenOperations::after(&history, 0).unwrap();
        assert_eq!((open.next(), open.accepts(&ended(1)), open.accepts(&ended(2))), (4, false, false));
        assert_eq!(
            (open.due(Timestamp::from_microseconds(6)), open.due(Timestamp::from_microseconds(7))),
            (vec![], vec![3])
        );
    }

    #[test]
    fn a_history_of_other_code_is_refused_with_its_place() {
        let end = StepEnd::Failed { error: "no".into() };
        let step = HistoryEvent::StepEnded { operation: 1, name: "look".into(), end, at: None };
        let error = OpenOperations::after(&[submitted(1), step], 0).unwrap_err();
        assert!(error.starts_with("event 1 of the history is a step"), "{error}");
    }
}
