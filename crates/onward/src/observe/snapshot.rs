//! What an engine does at this moment.

use std::time::Duration;

use onward_store::{ByteProgress, Name, Priority, SessionId, TaskId};
use serde::Serialize;

use super::forecast::{Forecast, ReportedProgress};
use crate::engine::{Engine, Run};
use crate::handlers::Attempt;
use crate::pressure::Pressure;

/// What one engine does at this moment, with live progress. Reads memory only. Serialisable, for a
/// dashboard.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Snapshot {
    /// Whether the engine runs.
    pub is_running: bool,
    /// How many handlers may run at once.
    pub concurrency: usize,
    /// What runs, the oldest task first.
    pub running: Vec<RunningTask>,
    /// How many tasks are claimed and have not started.
    pub buffered: usize,
    /// How many attempts have ended and are not yet durable.
    pub unsettled: usize,
    /// The pressure as it was last seen.
    pub pressure: Pressure,
}

/// A task whose handler runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunningTask {
    /// The task.
    pub id: TaskId,
    /// Its kind.
    pub kind: Name,
    /// The queue it was in.
    pub queue: Name,
    /// How urgent it is.
    pub priority: Priority,
    /// Which attempt it is, counted from 1.
    pub attempt: u32,
    /// The session that holds it.
    pub session: SessionId,
    /// How long its handler has run, in seconds.
    #[serde(serialize_with = "seconds")]
    pub elapsed: Duration,
    /// How far it says it is, from 0.0 to 1.0.
    pub fraction: Option<f32>,
    /// What it says it is doing.
    pub message: Option<String>,
    /// Whether it was asked to stop.
    pub is_stopping: bool,
    /// How many bytes it says it has done, and of how many.
    pub bytes: Option<ByteProgress>,
    /// How far it is, how fast it goes and how long it may take: from what it says; in an
    /// [`Overview`](crate::Overview), where it says nothing, from how long its kind took before.
    pub forecast: Forecast,
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

impl Snapshot {
    pub(crate) fn of(run: &Run) -> Self {
        let occupancy = run.state.occupancy();
        let now = run.inner.clock.steady();
        let mut running: Vec<_> = run.state.running().iter().map(|attempt| RunningTask::of(attempt, now)).collect();
        running.sort_unstable_by_key(|task| task.id);
        Self {
            is_running: true,
            concurrency: run.inner.settings.concurrency,
            running,
            buffered: occupancy.buffered,
            unsettled: occupancy.ended,
            pressure: run.inner.gauge.pressure(),
        }
    }
}

impl RunningTask {
    /// What its handler has said.
    pub(crate) fn reported(&self) -> ReportedProgress {
        ReportedProgress {
            fraction: self.fraction,
            bytes: self.bytes,
            bytes_per_second: self.forecast.bytes_per_second,
        }
    }

    fn of(attempt: &Attempt, now: Duration) -> Self {
        let task = &attempt.task;
        let began = attempt.started().unwrap_or(now);
        let reported = attempt.progress.reported(began, now);
        let elapsed = now.saturating_sub(began);
        Self {
            id: attempt.id(),
            kind: task.kind.clone(),
            queue: task.queue.clone(),
            priority: task.priority,
            attempt: task.attempt,
            session: task.lease.session,
            elapsed,
            fraction: reported.fraction,
            message: attempt.progress.message(),
            is_stopping: attempt.interruption().is_some(),
            bytes: reported.bytes,
            forecast: Forecast::of(reported, elapsed, None),
        }
    }
}

/// Looking at what runs.
impl Engine {
    /// What this engine does at this moment, with live progress.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let idle = || Snapshot {
            concurrency: self.inner.settings.concurrency,
            pressure: self.inner.gauge.pressure(),
            ..Snapshot::default()
        };
        self.inner.run().map_or_else(idle, |run| Snapshot::of(&run))
    }
}
