//! Metrics and traces.
//!
//! Metrics go through the [`metrics`] facade: install a recorder (such as
//! `metrics-exporter-prometheus`) **before** the engine is opened; without one they cost a branch
//! each.
//!
//! | metric | labels | what it is |
//! |---|---|---|
//! | `onward_tasks_submitted_total` | `kind`, `outcome` | submits by this process; `outcome` is `inserted`, `duplicate`, `priority_raised`, `requeued`, `superseded` or `rejected` |
//! | `onward_tasks_ended_total` | `kind`, `state` | tasks that this engine ended; `state` is `completed`, `failed`, `dead` or `cancelled` |
//! | `onward_attempts_failed_total` | `kind` | attempts that failed and are followed by another |
//! | `onward_leases_lost_total` | – | ended attempts whose result was refused because the lease was lost |
//! | `onward_attempt_seconds` | `kind` | histogram: from the start of a handler to its end |
//! | `onward_wait_seconds` | `kind` | histogram: from submission to the start of the first attempt, a delay that the submitter asked for included |
//! | `onward_commit_seconds` | – | histogram: how long the store took for one call of the dispatcher |
//! | `onward_commit_writes` | – | histogram: how many writes were in it |
//! | `onward_store_errors_total` | – | calls of the dispatcher that the store could not do |
//! | `onward_preemptions_total` | – | running tasks that were asked to give way to more urgent ones |
//! | `onward_schedule_firings_total` | `outcome` | firings of schedules by this process; `outcome` is `submitted`, `skipped`, `held`, `failed` or `missed` |
//! | `onward_turns_total` | `kind`, `outcome` | turns of orchestrations by this engine; `outcome` is `parked`, `completed`, `failed`, `cancelled`, `continued_as_new`, `dead`, `given_back` or `lost` |
//! | `onward_turn_seconds` | `kind` | histogram: from the claim of a turn until its last write is durable, its steps included |
//! | `onward_replays_total` | `kind` | orchestrations that were brought back by running their code on their histories: after a restart, on another worker, or when too many were kept |
//! | `onward_replayed_events_total` | `kind` | events that were fed to code in that |
//! | `onward_history_events_total` | `kind` | events that turns added to histories |
//! | `onward_history_bytes_total` | `kind` | and their bytes |
//! | `onward_orchestrations_kept` | – | parked orchestrations in the memory of this engine, at most [`orchestrations_kept`](crate::EngineBuilder::orchestrations_kept) |
//! | `onward_running` | – | slots in use |
//! | `onward_buffered` | – | tasks claimed and not started |
//!
//! Traces go through [`tracing`]: a span `submit` (fields `task`, `kind`, `queue`) around each
//! submit of one task, a span `submit_all` (fields `tasks`, `first`, `last`: how many, and the
//! numbers of the first and the last) around each submit of several, and a span `attempt` (fields
//! `task`, `kind`, `queue`, `attempt`) around each poll of a handler; the task's number links them.
//! An event of the level `DEBUG` (fields `task`, `kind`, `attempt`, `state`) tells that the end of
//! an attempt is durable, and in which state its task is. Further events tell of lost leases and
//! sessions, of store errors, and of handlers that do not stop.

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

    /// The metrics of a kind, made when the kind is first seen. A store has at most 10 000 kinds.
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
            Firing::Held { .. } => &self.held,
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

const SUBMIT_OUTCOMES: [&str; 6] = ["inserted", "duplicate", "priority_raised", "requeued", "superseded", "rejected"];

impl KindTelemetry {
    fn new(kind: &Name) -> Self {
        let kind = SharedString::from_owned(kind.as_str().to_owned());
        let ended =
            |state: TaskState| counter!("onward_tasks_ended_total", "kind" => kind.clone(), "state" => state.as_str());
        Self {
            submitted: SUBMIT_OUTCOMES
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
        let [inserted, duplicate, priority_raised, requeued, superseded, rejected] = &self.submitted;
        let counter = match outcome {
            Submitted::Inserted { .. } => inserted,
            Submitted::Duplicate { .. } => duplicate,
            Submitted::PriorityRaised { .. } => priority_raised,
            Submitted::Requeued { .. } => requeued,
            Submitted::Superseded { .. } => superseded,
            Submitted::Rejected { .. } => rejected,
        };
        counter.increment(1);
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
