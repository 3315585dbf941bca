//! Metrics of turns; their names are in [`telemetry`](crate::observe::telemetry).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, SharedString, counter, gauge, histogram};
use onward_store::{AfterTurn, Name};

/// The outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnOutcome {
    Parked,
    Completed,
    Failed,
    Cancelled,
    ContinuedAsNew,
    Dead,
    GivenBack,
    Lost,
}

impl TurnOutcome {
    const ALL: [Self; 8] = [
        Self::Parked,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::ContinuedAsNew,
        Self::Dead,
        Self::GivenBack,
        Self::Lost,
    ];

    /// Returns the outcome of a turn with this continuation.
    pub(crate) fn of(next: &AfterTurn) -> Self {
        match next {
            AfterTurn::Continue | AfterTurn::Park { .. } => Self::Parked,
            AfterTurn::Complete { .. } => Self::Completed,
            AfterTurn::Fail { .. } => Self::Failed,
            AfterTurn::Dead { .. } => Self::Dead,
            AfterTurn::Cancelled { .. } => Self::Cancelled,
            AfterTurn::ContinueAsNew { .. } => Self::ContinuedAsNew,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::ContinuedAsNew => "continued_as_new",
            Self::Dead => "dead",
            Self::GivenBack => "given_back",
            Self::Lost => "lost",
        }
    }
}

/// The metrics of the orchestrations of one engine.
#[derive(Debug)]
pub(crate) struct OrchestrationTelemetry {
    kinds: RwLock<HashMap<Name, Arc<TurnTelemetry>>>,
    pub(super) cached: Gauge,
    pub(super) cached_runs: Gauge,
}

impl OrchestrationTelemetry {
    pub(crate) fn new() -> Self {
        Self {
            kinds: RwLock::default(),
            cached: gauge!("onward_orchestrations_cached"),
            cached_runs: gauge!("onward_workflow_runs_cached"),
        }
    }

    /// Returns the metrics of a kind, created at its first turn.
    pub(super) fn kind(&self, kind: &Name) -> Arc<TurnTelemetry> {
        if let Some(known) = self.kinds.read().unwrap_or_else(PoisonError::into_inner).get(kind) {
            return Arc::clone(known);
        }
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(kinds.entry(kind.clone()).or_insert_with(|| Arc::new(TurnTelemetry::new(kind))))
    }
}

/// The metrics of one kind.
pub(super) struct TurnTelemetry {
    turns: [Counter; 8],
    seconds: Histogram,
    replays: Counter,
    replayed_events: Counter,
    events: Counter,
    bytes: Counter,
}

impl std::fmt::Debug for TurnTelemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnTelemetry").finish_non_exhaustive()
    }
}

impl TurnTelemetry {
    fn new(kind: &Name) -> Self {
        let kind = SharedString::from_owned(kind.as_str().to_owned());
        Self {
            turns: TurnOutcome::ALL
                .map(|outcome| counter!("onward_turns_total", "kind" => kind.clone(), "outcome" => outcome.as_str())),
            seconds: histogram!("onward_turn_seconds", "kind" => kind.clone()),
            replays: counter!("onward_replays_total", "kind" => kind.clone()),
            replayed_events: counter!("onward_replayed_events_total", "kind" => kind.clone()),
            events: counter!("onward_history_events_total", "kind" => kind.clone()),
            bytes: counter!("onward_history_bytes_total", "kind" => kind),
        }
    }

    pub(super) fn turned(&self, outcome: TurnOutcome, took: Duration) {
        let counter = self.turns.iter().zip(TurnOutcome::ALL).find(|(_, one)| *one == outcome);
        counter.into_iter().for_each(|(counter, _)| counter.increment(1));
        self.seconds.record(took.as_secs_f64());
    }

    pub(super) fn replayed(&self, events: u64) {
        self.replays.increment(1);
        self.replayed_events.increment(events);
    }

    pub(super) fn wrote(&self, events: u64, bytes: u64) {
        self.events.increment(events);
        self.bytes.increment(bytes);
    }
}
