//! The attempts that a worker holds.

use std::collections::HashMap;
use std::time::Duration;

use onward_protocol::TaskFence;

use super::io::EngineEnd;

/// The state of an attempt that the worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptState {
    /// The worker runs it.
    Running,
    /// The worker was asked to stop it, and is reported as stuck at this time.
    Stopping(Duration),
    /// The worker was asked to stop it, and was reported as stuck.
    Stuck,
    /// Its end is on the way to the store.
    Ending,
}

/// An attempt that the worker holds.
#[derive(Debug, Clone)]
pub(super) struct HeldAttempt {
    pub(super) kind: String,
    pub(super) state: AttemptState,
    /// The number of checkpoints that are on the way to the store.
    pub(super) checkpoints: u32,
    /// The end, which waits for the checkpoints before it.
    pub(super) deferred: Option<EngineEnd>,
}

/// The attempts that a worker holds. Their number is bounded by its credit.
#[derive(Debug, Default)]
pub(super) struct HeldAttempts {
    attempts: HashMap<TaskFence, HeldAttempt>,
    of_kind: HashMap<String, u32>,
}

impl HeldAttempts {
    pub(super) fn add(&mut self, attempt: TaskFence, kind: String) {
        *self.of_kind.entry(kind.clone()).or_default() += 1;
        self.attempts
            .insert(attempt, HeldAttempt { kind, state: AttemptState::Running, checkpoints: 0, deferred: None });
    }

    pub(super) fn remove(&mut self, attempt: TaskFence) -> Option<HeldAttempt> {
        let held = self.attempts.remove(&attempt)?;
        if let Some(count) = self.of_kind.get_mut(&held.kind) {
            *count = count.saturating_sub(1);
        }
        Some(held)
    }

    pub(super) fn get_mut(&mut self, attempt: TaskFence) -> Option<&mut HeldAttempt> {
        self.attempts.get_mut(&attempt)
    }

    pub(super) fn get(&self, attempt: TaskFence) -> Option<&HeldAttempt> {
        self.attempts.get(&attempt)
    }

    pub(super) fn len(&self) -> usize {
        self.attempts.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.attempts.is_empty()
    }

    /// Returns the number of attempts of a kind.
    pub(super) fn of_kind(&self, kind: &str) -> u32 {
        self.of_kind.get(kind).copied().unwrap_or(0)
    }

    /// Returns every attempt whose end is not on the way, in the order of their ids.
    pub(super) fn open(&self) -> Vec<TaskFence> {
        let open = self.attempts.iter().filter(|(_, held)| held.state != AttemptState::Ending);
        let mut open: Vec<_> = open.map(|(attempt, _)| *attempt).collect();
        open.sort_unstable();
        open
    }

    /// Returns the ends that wait for checkpoints.
    pub(super) fn take_deferred(&mut self) -> Vec<(TaskFence, EngineEnd)> {
        self.attempts.iter_mut().filter_map(|(attempt, held)| Some((*attempt, held.deferred.take()?))).collect()
    }

    /// Returns the next time at which an attempt is stuck.
    pub(super) fn next_stuck(&self) -> Option<Duration> {
        let stopping = |held: &HeldAttempt| match held.state {
            AttemptState::Stopping(until) => Some(until),
            _ => None,
        };
        self.attempts.values().filter_map(stopping).min()
    }

    /// Marks the attempts that are stuck at a time, and returns them.
    pub(super) fn take_stuck(&mut self, now: Duration) -> Vec<TaskFence> {
        let mut stuck = Vec::new();
        for (attempt, held) in &mut self.attempts {
            if matches!(held.state, AttemptState::Stopping(until) if until <= now) {
                held.state = AttemptState::Stuck;
                stuck.push(*attempt);
            }
        }
        stuck
    }
}
