//! Metrics and traces.
//!
//! Metrics go through the [`metrics`] facade. Install a recorder (such as
//! `metrics-exporter-prometheus`) **before** the engine is opened; without one each metric costs a
//! branch.
//!
//! | metric | labels | meaning |
//! |---|---|---|
//! | `onward_tasks_submitted_total` | `kind`, `outcome` | submits by this process |
//! | `onward_tasks_ended_total` | `kind`, `state` | tasks that this engine ended |
//! | `onward_attempts_failed_total` | `kind` | attempts that failed and are retried |
//! | `onward_leases_lost_total` | – | results that were rejected because the lease was lost |
//! | `onward_attempt_seconds` | `kind` | histogram: run time of a handler and its clean-up |
//! | `onward_wait_seconds` | `kind` | histogram: time from submission to the first attempt |
//! | `onward_commit_seconds` | – | histogram: duration of a store call of the dispatcher |
//! | `onward_commit_writes` | – | histogram: number of writes in such a call |
//! | `onward_store_errors_total` | – | failed store calls of a run |
//! | `onward_preemptions_total` | – | running tasks that were asked to give way |
//! | `onward_schedule_firings_total` | `outcome` | firings of schedules by this process |
//! | `onward_turns_total` | `kind`, `outcome` | turns of orchestrations by this engine |
//! | `onward_turn_seconds` | `kind` | histogram: time from a turn's start to its durable write |
//! | `onward_replays_total` | `kind` | orchestrations that were replayed from their histories |
//! | `onward_replayed_events_total` | `kind` | events in these replays |
//! | `onward_history_events_total` | `kind` | events that turns added to histories |
//! | `onward_history_bytes_total` | `kind` | bytes of these events |
//! | `onward_orchestrations_cached` | – | parked orchestrations in the memory of this engine |
//! | `onward_running` | – | slots in use |
//! | `onward_buffered` | – | tasks claimed and not started |
//!
//! * The `outcome` of a submit is `inserted`, `duplicate`, `priority_raised`, `requeued`,
//!   `superseded` or `rejected`. The `state` of a task is `completed`, `failed`, `dead` or
//!   `cancelled`.
//! * The `outcome` of a firing is `submitted`, `skipped`, `held`, `failed` or `missed`. The
//!   `outcome` of a turn is `parked`, `completed`, `failed`, `cancelled`, `continued_as_new`,
//!   `dead`, `given_back` or `lost`.
//! * `onward_wait_seconds` includes a delay that the submitter asked for, and `onward_turn_seconds`
//!   the steps of the turn.
//! * `onward_store_errors_total` counts failed calls of the dispatcher, the scheduler and
//!   retention.
//! * An orchestration is replayed after a restart, on another worker, or after it was evicted. At
//!   most [`orchestrations_cached`](crate::EngineBuilder::orchestrations_cached) stay in memory.
//!
//! Traces go through [`tracing`]. A span `submit` (fields `task`, `kind`, `queue`) surrounds each
//! submit of one task. A span `submit_all` surrounds each submit of several; its fields are
//! `tasks`, their number, and `first` and `last`, the ids of the first and the last. A span
//! `attempt` (fields `task`, `kind`, `queue`, `attempt`) surrounds each poll of a handler. The id
//! of the task links them.
//!
//! An event of the level `DEBUG` (fields `task`, `kind`, `attempt`, `state`) reports that the end
//! of an attempt is durable, and the state of its task. Further events report lost leases and
//! sessions, errors of the store, and handlers that do not stop.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use metrics::{Counter, Gauge, Histogram, SharedString, counter, gauge, histogram};
use onward_store::{Firing, Name, Submitted, TaskState};

use crate::orchestration::OrchestrationTelemetry;

/// The metrics of one engine.
#[derive(Debug)]
pub(crate) struct Telemetry {
    kinds: RwLock<HashMap<Name, Arc<KindTelemetry>>>,
    pub(crate) leases_lost: Counter,
    pub(crate) store_errors: Counter,
    pub(crate) preemptions: Counter,
    pub(crate) commit_seconds: Histogram,
    pub(crate) commit_writes: Histogram,
    pub(crate) schedules: ScheduleTelemetry,
    pub(crate) orchestrations: OrchestrationTelemetry,
    pub(crate) running: Gauge,
    pub(crate) buffered: Gauge,
}

impl Telemetry {
    pub(crate) fn new() -> Self {
        Self {
            kinds: RwLock::default(),
            leases_lost: counter!("onward_leases_lost_total"),
            store_errors: counter!("onward_store_errors_total"),
            preemptions: counter!("onward_preemptions_total"),
            commit_seconds: histogram!("onward_commit_seconds"),
            commit_writes: histogram!("onward_commit_writes"),
            schedules: ScheduleTelemetry::new(),
            orchestrations: OrchestrationTelemetry::new(),
            running: gauge!("onward_running"),
            buffered: gauge!("onward_buffered"),
        }
    }

    /// Returns the metrics of a kind, created when the kind is first seen. A store has at most 10
    /// 000 kinds.
    pub(crate) fn kind(&self, kind: &Name) -> Arc<KindTelemetry> {
        if let Some(known) = self.kinds.read().unwrap_or_else(PoisonError::into_inner).get(kind) {
            return Arc::clone(known);
        }
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(kinds.entry(kind.clone()).or_insert_with(|| Arc::new(KindTelemetry::new(kind))))
    }
}

/// The metrics of schedules.
#[derive(Debug)]
pub(crate) struct ScheduleTelemetry {
    submitted: Counter,
    skipped: Counter,
    held: Counter,
    failed: Counter,
    pub(crate) missed: Counter,
}

impl ScheduleTelemetry {
    fn new() -> Self {
        let firings = |outcome: &'static str| counter!("onward_schedule_firings_total", "outcome" => outcome);
        Self {
            submitted: firings("submitted"),
            skipped: firings("skipped"),
            held: firings("held"),
            failed: firings("failed"),
            missed: firings("missed"),
        }
    }

    pub(crate) fn count(&self, firing: &Firing) {
        let counter = match firing {
            Firing::Submitted { .. } => &self.submitted,
            Firing::Skipped { .. } => &self.skipped,
            Firing::Pending { .. } => &self.held,
            Firing::Failed { .. } => &self.failed,
        };
        counter.increment(1);
    }
}

/// The metrics of one kind.
pub(crate) struct KindTelemetry {
    kind: SharedString,
    submitted: [Counter; 6],
    completed: Counter,
    failed: Counter,
    dead: Counter,
    cancelled: Counter,
    retried: Counter,
    pub(crate) attempt_seconds: Histogram,
    pub(crate) wait_seconds: Histogram,
}

impl std::fmt::Debug for KindTelemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KindTelemetry").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl KindTelemetry {
    fn new(kind: &Name) -> Self {
        let kind = SharedString::from_owned(kind.as_str().to_owned());
        let ended =
            |state: TaskState| counter!("onward_tasks_ended_total", "kind" => kind.clone(), "state" => state.as_str());
        Self {
            submitted: Submitted::NAMES
                .map(|outcome| counter!("onward_tasks_submitted_total", "kind" => kind.clone(), "outcome" => outcome)),
            completed: ended(TaskState::Completed),
            failed: ended(TaskState::Failed),
            dead: ended(TaskState::Dead),
            cancelled: ended(TaskState::Cancelled),
            retried: counter!("onward_attempts_failed_total", "kind" => kind.clone()),
            attempt_seconds: histogram!("onward_attempt_seconds", "kind" => kind.clone()),
            wait_seconds: histogram!("onward_wait_seconds", "kind" => kind.clone()),
            kind,
        }
    }

    pub(crate) fn submitted(&self, outcome: Submitted) {
        let counters = Submitted::NAMES.into_iter().zip(&self.submitted);
        counters.filter(|(name, _)| *name == outcome.as_str()).for_each(|(_, counter)| counter.increment(1));
    }

    /// Counts an attempt after which the task is in `state`.
    pub(crate) fn ended(&self, state: TaskState) {
        let counter = match state {
            TaskState::Completed => &self.completed,
            TaskState::Failed => &self.failed,
            TaskState::Dead => &self.dead,
            TaskState::Cancelled => &self.cancelled,
            TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting | TaskState::Running => &self.retried,
            TaskState::Expired => return,
        };
        counter.increment(1);
    }
}
