//! The worker's lines on standard error: its start, failures, standard error of commands, a
//! summary.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward::observe::{Change, DrainSummary, Transition};
use onward_store::{Store, StoreReads, TaskId};
use serde_json::{Value, json};

use super::arguments::Arguments;
use crate::options::GlobalOptions;
use crate::output::{counted, duration_text, one_line, remark};
use crate::process::Captured;

/// The largest number of failures shown per second. The others are counted.
const SHOWN_EACH_SECOND: u32 = 10;

/// The part of an error that is shown, in columns.
const SHOWN_COLUMNS: usize = 200;

/// The end of a command's standard error that is shown, in bytes.
const SHOWN_BYTES: usize = 4096;

/// A reporter of the worker's activity.
#[derive(Debug)]
pub(super) struct Console {
    store: Arc<dyn Store>,
    json: bool,
    quiet: bool,
    second: Mutex<CurrentSecond>,
}

/// The failures shown in the current second.
#[derive(Debug, Default)]
struct CurrentSecond {
    began: Duration,
    shown: u32,
    left_out: u64,
}

impl CurrentSecond {
    /// Counts a failure. Returns the number of failures left out before it, or `None` if this one
    /// is left out too.
    fn take(&mut self, now: Duration, missed: u64) -> Option<u64> {
        self.left_out += missed;
        if now.saturating_sub(self.began) >= Duration::from_secs(1) {
            (self.began, self.shown) = (now, 0);
        }
        if self.shown == SHOWN_EACH_SECOND {
            self.left_out += 1;
            return None;
        }
        self.shown += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Describes the work that the worker takes.
fn served(arguments: &Arguments, kinds: &[String]) -> String {
    let kinds = (!kinds.is_empty()).then(|| format!("kind {}", kinds.join(", ")));
    let workflows = match (arguments.workflows, arguments.scripts) {
        (false, _) => None,
        (true, false) => Some("workflow runs".to_owned()),
        (true, true) => Some("workflow runs and their scripts".to_owned()),
    };
    kinds.into_iter().chain(workflows).collect::<Vec<_>>().join(" and ")
}

impl Console {
    pub(super) fn new(options: &GlobalOptions, arguments: &Arguments, store: &Arc<dyn Store>) -> Self {
        let (store, second) = (Arc::clone(store), Mutex::default());
        Self { store, json: options.json, quiet: arguments.quiet, second }
    }

    /// Reports that the worker has started.
    pub(super) fn started(&self, options: &GlobalOptions, arguments: &Arguments, jobs: usize) {
        let names = |names: &[onward_store::Name]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (kinds, queues, process) = (names(&arguments.kinds), names(&arguments.queues), std::process::id());
        let store = options.store.to_string();
        let served = served(arguments, &kinds);
        self.report(
            || {
                json!({
                    "event": "started", "process": process, "store": store, "kinds": kinds, "queues": queues,
                    "workflows": arguments.workflows, "scripts": arguments.scripts, "jobs": jobs
                })
            },
            || {
                let from =
                    if queues.is_empty() { "any queue".to_owned() } else { format!("queue {}", queues.join(", ")) };
                format!("worker {process} on {store}: {served} of {from}, {}", counted(jobs as u64, "job"))
            },
        );
    }

    /// Reports a fault of the worker itself, even with `--quiet`.
    pub(super) fn fault(&self, message: &str) {
        if self.json { remark(json!({ "event": "fault", "message": message })) } else { remark(message) }
    }

    /// Reports the outcome of an attempt that did not complete its task.
    pub(super) async fn transition(&self, transition: Transition) {
        let is_failure = matches!(transition.change, Change::Failed | Change::Dead | Change::Retrying { .. });
        if self.quiet || !(is_failure || transition.missed > 0) {
            return;
        }
        let now = self.store.clock().steady();
        let left_out = self.lock().take(now, transition.missed.saturating_sub(u64::from(!is_failure)));
        let Some(left_out) = left_out else { return };
        self.report_left_out(left_out);
        if is_failure {
            let error = self.error(transition.task, transition.attempt).await;
            self.report(|| failure_json(&transition, &error), || failure_text(&transition, &error));
        }
    }

    /// Returns the error of an attempt. If the store cannot be read, the failure is reported
    /// without its error.
    async fn error(&self, task: TaskId, attempt: u32) -> String {
        let errors = self.store.task(task).await.ok().flatten().map(|task| task.errors).unwrap_or_default();
        let of_attempt = errors.into_iter().rev().find(|error| error.attempt == attempt);
        of_attempt.map_or_else(|| "its error is not kept".to_owned(), |error| error.message)
    }

    /// Shows the end of the standard error of a command that succeeded.
    pub(super) fn stderr(&self, task: TaskId, stderr: &Captured) {
        if stderr.bytes.is_empty() {
            return;
        }
        let from = stderr.bytes.len().saturating_sub(SHOWN_BYTES);
        let (text, is_cut) = (String::from_utf8_lossy(&stderr.bytes[from..]), stderr.cut || from > 0);
        self.report(
            || json!({ "event": "stderr", "task": task, "text": text, "cut": is_cut }),
            || {
                let mark = is_cut.then(|| format!("task {task}: […] the last {SHOWN_BYTES} bytes of standard error:"));
                let lines = text.lines().map(|line| format!("task {task}: {}", one_line(line, usize::MAX)));
                mark.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
            },
        );
    }

    /// Reports the summary of the work.
    pub(super) fn ended(&self, summary: DrainSummary, took: Duration) {
        let left_out = std::mem::take(&mut self.lock().left_out);
        self.report_left_out(left_out);
        let DrainSummary { completed, failed, dead, cancelled, retried, lost, .. } = summary;
        let retried = counted(retried, "attempt");
        self.report(
            || {
                let mut summary = json!(summary);
                summary["event"] = "ended".into();
                summary["seconds"] = took.as_secs_f64().into();
                summary
            },
            || {
                format!(
                    "{completed} completed, {failed} failed, {dead} dead, {cancelled} cancelled; {retried} to be retried, \
                     {lost} lost; {}",
                    duration_text(took)
                )
            },
        );
    }

    fn report_left_out(&self, count: u64) {
        if count > 0 {
            let what = counted(count, "failure");
            self.report(
                || json!({ "event": "left_out", "failures": count }),
                || format!("{what} not shown here; see onward task list"),
            );
        }
    }

    fn report(&self, value: impl FnOnce() -> Value, text: impl FnOnce() -> String) {
        match (self.quiet, self.json) {
            (true, _) => {}
            (false, true) => remark(value()),
            (false, false) => remark(text()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CurrentSecond> {
        self.second.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failure_json(transition: &Transition, error: &str) -> Value {
    let Transition { task, kind, queue, attempt, change, .. } = transition;
    let (state, after) = match change {
        Change::Dead => ("dead", None),
        Change::Retrying { after, .. } => ("retrying", Some(after.as_secs_f64())),
        _ => ("failed", None),
    };
    json!({
        "event": "failure", "task": task, "kind": kind, "queue": queue, "attempt": attempt, "state": state, "after": after,
        "error": error,
    })
}

fn failure_text(transition: &Transition, error: &str) -> String {
    let Transition { task, kind, attempt, change, .. } = transition;
    let error = one_line(error, SHOWN_COLUMNS);
    let attempts = counted((*attempt).into(), "attempt");
    match change {
        Change::Dead => format!("task {task} ({kind}) is dead after {attempts}: {error}"),
        Change::Retrying { after, .. } => {
            format!(
                "task {task} ({kind}) failed in attempt {attempt}, and is retried in {}: {error}",
                duration_text(*after)
            )
        }
        _ => format!("task {task} ({kind}) failed permanently after {attempts}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_failures_in_a_second_some_are_shown_and_the_others_counted() {
        let (mut second, now) = (CurrentSecond::default(), Duration::from_secs(100));
        let shown = (0..100).filter(|_| second.take(now, 0).is_some()).count();
        assert_eq!(shown, SHOWN_EACH_SECOND as usize);
        assert_eq!(second.take(now + Duration::from_secs(1), 0), Some(90));
    }
}
