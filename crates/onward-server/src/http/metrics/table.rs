//! The table of all metrics. The documentation and the dashboard are compared with it.

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// The name. Its ending names the unit; without one it counts things.
    pub name: &'static str,
    /// The type: `gauge` or `counter`.
    pub kind: &'static str,
    /// The labels.
    pub labels: &'static [&'static str],
    /// The description.
    pub help: &'static str,
}

const fn metric(name: &'static str, kind: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind, labels, help }
}

pub(super) const TASKS: &Metric = &METRICS[0];
pub(super) const OLDEST: &Metric = &METRICS[1];
pub(super) const PAUSED: &Metric = &METRICS[2];
pub(super) const ENDED: &Metric = &METRICS[3];
pub(super) const ATTEMPTS: &Metric = &METRICS[4];
pub(super) const WAIT: &Metric = &METRICS[5];
pub(super) const RUN: &Metric = &METRICS[6];
pub(super) const LIMIT_RUNNING: &Metric = &METRICS[7];
pub(super) const WORKERS: &Metric = &METRICS[8];
pub(super) const REQUESTS: &Metric = &METRICS[9];
pub(super) const STREAMS: &Metric = &METRICS[10];

/// All metrics.
pub const METRICS: &[Metric] = &[
    metric("onward_tasks", "gauge", &["queue", "state"], "Live tasks."),
    metric("onward_oldest_waiting_seconds", "gauge", &["queue"], "Time since the first waiting task was due."),
    metric("onward_queue_paused", "gauge", &["queue"], "1 if the queue is paused, or else 0."),
    metric("onward_tasks_ended_total", "counter", &["kind", "state"], "Ended tasks since the store was created."),
    metric("onward_attempts_total", "counter", &["kind"], "Attempts of completed tasks."),
    metric("onward_wait_seconds_total", "counter", &["kind"], "Time for which completed tasks waited."),
    metric("onward_run_seconds_total", "counter", &["kind"], "Time of the last attempts of completed tasks."),
    metric("onward_limit_running", "gauge", &["scope"], "Running tasks of a limit."),
    metric("onward_workers", "gauge", &[], "Workers that are registered."),
    metric("onward_http_requests_total", "counter", &["status"], "Requests to this server, by class of status."),
    metric("onward_http_streams", "gauge", &[], "Open event streams and long polls of this server."),
];
