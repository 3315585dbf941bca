//! The orchestrations whose code a worker has kept, with the length of the history that it has
//! seen.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use onward::TaskId;

use crate::gateway::bounds::KEPT_TURNS;

/// A history that a worker has seen: its generation and its number of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenHistory {
    pub(super) generation: u32,
    pub(super) length: u64,
}

/// The newest orchestrations that one worker has kept.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptTurns(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    tasks: HashMap<TaskId, Entry>,
    /// The tasks by their last turn, the oldest first.
    order: BTreeMap<u64, TaskId>,
    turns: u64,
}

#[derive(Debug)]
struct Entry {
    seen: SeenHistory,
    /// The claim of the turn, until the turn is durable.
    unwritten: Option<u32>,
    turn: u64,
}

impl KeptTurns {
    /// Notes that the worker keeps the code after a turn, which is not durable yet.
    pub(super) fn replied(&self, task: TaskId, claim: u32, seen: SeenHistory) {
        self.with(|kept| kept.replied(task, claim, seen));
    }

    /// Notes that the turn of a claim is durable, or has no effect.
    pub(super) fn ended(&self, task: TaskId, claim: u32, is_durable: bool) {
        self.with(|kept| match kept.tasks.get_mut(&task) {
            Some(entry) if entry.unwritten == Some(claim) && is_durable => entry.unwritten = None,
            Some(entry) if entry.unwritten == Some(claim) => kept.forget(task),
            _ => {}
        });
    }

    /// Forgets an orchestration: the worker does not have its code, or has ended it.
    pub(super) fn forget(&self, task: TaskId) {
        self.with(|kept| kept.forget(task));
    }

    /// Returns true if the worker has the code of an orchestration after exactly this history.
    pub(super) fn has(&self, task: TaskId, seen: SeenHistory) -> bool {
        self.with(|kept| kept.tasks.get(&task).is_some_and(|entry| entry.unwritten.is_none() && entry.seen == seen))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Entries) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entries {
    fn replied(&mut self, task: TaskId, claim: u32, seen: SeenHistory) {
        self.forget(task);
        if self.tasks.len() == KEPT_TURNS
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.tasks.remove(&oldest);
        }
        self.turns += 1;
        self.order.insert(self.turns, task);
        self.tasks.insert(task, Entry { seen, unwritten: Some(claim), turn: self.turns });
    }

    fn forget(&mut self, task: TaskId) {
        if let Some(entry) = self.tasks.remove(&task) {
            self.order.remove(&entry.turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: SeenHistory = SeenHistory { generation: 0, length: 3 };

    /// Shows: W9
    #[test]
    fn a_history_is_seen_when_its_turn_is_durable() {
        let kept = KeptTurns::default();
        kept.replied(TaskId(7), 1, SEEN);
        assert!(!kept.has(TaskId(7), SEEN));
        kept.ended(TaskId(7), 1, true);
        assert!(kept.has(TaskId(7), SEEN));
        assert!(!kept.has(TaskId(7), SeenHistory { length: 4, ..SEEN }));
        assert!(!kept.has(TaskId(7), SeenHistory { generation: 1, ..SEEN }));
    }

    /// Shows: W9
    #[test]
    fn a_turn_without_effect_is_forgotten() {
        let kept = KeptTurns::default();
        kept.replied(TaskId(7), 1, SEEN);
        kept.ended(TaskId(7), 1, false);
        kept.ended(TaskId(7), 1, true);
        assert!(!kept.has(TaskId(7), SEEN));
    }

    /// Shows: W9
    #[test]
    fn the_oldest_orchestration_makes_room_for_another_one() {
        let kept = KeptTurns::default();
        for task in 0..=KEPT_TURNS {
            let task = TaskId(i64::try_from(task).unwrap());
            kept.replied(task, 1, SEEN);
            kept.ended(task, 1, true);
        }
        assert!(!kept.has(TaskId(0), SEEN) && kept.has(TaskId(1), SEEN));
        kept.with(|kept| assert_eq!((kept.tasks.len(), kept.order.len()), (KEPT_TURNS, KEPT_TURNS)));
    }
}
