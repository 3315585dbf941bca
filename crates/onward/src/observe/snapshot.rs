//! The present activity of an engine.

use std::time::Duration;

use onward_store::{ByteProgress, Name, Priority, SessionId, TaskId};
use serde::Serialize;

use super::forecast::{Forecast, ReportedProgress};
use crate::engine::{Engine, Run};
use crate::handlers::Attempt;
use crate::pressure::Pressure;

/// The present activity of one engine, with live progress. It is read from memory only, and is
/// serialisable for a dashboard.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// True if the engine runs.
    pub is_running: bool,
    /// The number of handlers that may run at once.
    pub concurrency: usize,
    /// The running tasks, the oldest first.
    pub running: Vec<RunningTask>,
    /// The number of tasks that are claimed and have not started.
    pub buffered: usize,
    /// The number of attempts that have ended and are not yet durable.
    pub awaiting_commit: usize,
    /// The pressure at the last sample.
    pub pressure: Pressure,
}

/// A task whose handler runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunningTask {
    /// The task.
    pub id: TaskId,
    /// The kind.
    pub kind: Name,
    /// The queue that the task was in.
    pub queue: Name,
    /// The priority.
    pub priority: Priority,
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// The session that holds it.
    pub session: SessionId,
    /// The run time of the handler, in seconds.
    #[serde(serialize_with = "seconds")]
    pub elapsed: Duration,
    /// The reported progress, from 0.0 to 1.0.
    pub fraction: Option<f32>,
    /// The reported message.
    pub message: Option<String>,
    /// True if the handler was asked to stop.
    pub is_stopping: bool,
    /// The reported bytes, and their total.
    pub bytes: Option<ByteProgress>,
    /// The forecast of its progress, rate and remaining time, from what the handler reports. For a
    /// handler that reports nothing, an [`Overview`](crate::observe::Overview) estimates it from
    /// earlier tasks of the kind.
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
            awaiting_commit: occupancy.ended,
            pressure: run.inner.gauge.pressure(),
        }
    }
}

impl RunningTask {
    /// Returns the progress that the handler has reported.
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

/// Snapshots.
impl Engine {
    /// Returns the present activity of this engine, with live progress.
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
