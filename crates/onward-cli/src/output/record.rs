//! All facts of one task, for people.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use onward::observe::Forecast;
use onward_store::rules::retry::{Backoff, RetryPolicy};
use onward_store::{Aggregate, ByteProgress, Io, IoKind, Progress, TaskRecord, Ttl, TtlFrom};

use super::cleaning::cleaned;
use super::text::{colored_state, duration_text, moment, one_line};

/// The number of columns of a payload or a result that are shown; `--json` has all of it.
const SHOWN_COLUMNS: usize = 400;

/// Returns the task, one fact per line, with a forecast for a running one.
pub(crate) fn show_task(task: &TaskRecord, forecast: Option<Forecast>) -> String {
    let mut text = String::new();
    let mut fact = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    fact("task", task.id.to_string());
    fact("kind", task.kind.to_string());
    fact("queue", task.queue.to_string());
    fact("state", state(task));
    fact("priority", task.priority.0.to_string());
    fact("attempts", task.attempts.to_string());
    for (name, value) in optional_facts(task) {
        fact(name, value);
    }
    if let Some(forecast) = forecast.map(forecast_text).filter(|text| !text.is_empty()) {
        fact("forecast", forecast);
    }
    for (key, value) in task.tags.iter() {
        fact("tag", format!("{key}={}", one_line(value, SHOWN_COLUMNS)));
    }
    for error in &task.errors {
        let attempt = if error.attempt == 0 { "no attempt".to_owned() } else { format!("attempt {}", error.attempt) };
        fact("error", format!("{attempt} at {}: {}", moment(error.at), indented(&error.message)));
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns a text with its further lines indented to the column of values, so that none looks like
/// a fact.
pub(crate) fn indented(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    cleaned(&lines.join("\n             ")).into_owned()
}

fn state(task: &TaskRecord) -> String {
    let asked = if task.cancel_requested && !task.state.is_ended() { " (asked to stop)" } else { "" };
    format!("{}{asked}", colored_state(task.state))
}

fn optional_facts(task: &TaskRecord) -> Vec<(&'static str, String)> {
    let took = task.started_at.zip(task.finished_at).map(|(started, finished)| duration_text(finished - started));
    let facts = [
        ("group", task.group.as_ref().map(ToString::to_string)),
        ("affinity", task.affinity.as_ref().map(ToString::to_string)),
        ("key", task.key.as_ref().map(|key| one_line(key, SHOWN_COLUMNS))),
        ("submitted", Some(moment(task.submitted_at))),
        ("due", Some(moment(task.run_at))),
        ("scheduled", task.scheduled_at.map(|at| format!("for {}", moment(at)))),
        ("expires", task.expires_at.map(moment)),
        ("time to live", task.ttl.map(time_to_live)),
        ("timeout", task.timeout.map(duration_text)),
        ("heartbeat", task.heartbeat_timeout.map(|timeout| format!("every {}", duration_text(timeout)))),
        ("deadline", task.deadline.map(moment)),
        ("retention", task.retention.map(duration_text)),
        ("retries", task.retry.map(retries)),
        ("key reserved", Some(task.keep_key_for).filter(|time| !time.is_zero()).map(reserved_text)),
        ("started", task.started_at.map(moment)),
        ("finished", task.finished_at.map(moment)),
        ("took", took),
        ("parent", task.parent.map(|parent| parent.to_string())),
        ("batch", task.batch.map(|batch| batch.to_string())),
        ("items", (task.items > 0).then(|| task.items.to_string())),
        ("batched", task.aggregate.map(batched)),
        ("blocked by", blocked_by(task)),
        ("session", task.session.map(|session| session.to_string())),
        ("progress", task.progress.as_ref().map(|reported| one_line(&progress(reported), SHOWN_COLUMNS))),
        ("expected I/O", moved(task.expected_io)),
        ("I/O", task.io.and_then(moved)),
        ("payload", task.payload.as_ref().filter(|payload| !payload.is_empty()).map(shown_bytes)),
        ("result", task.result.bytes().map(shown_bytes)),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn time_to_live(ttl: Ttl) -> String {
    let from = match ttl.from {
        TtlFrom::Submission => "its submission",
        TtlFrom::FirstAttempt => "its first attempt",
    };
    format!("{} from {from}", duration_text(ttl.duration))
}

/// The time from which on a reservation is shown as one without end.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Returns the time for which a key stays reserved after the end.
fn reserved_text(time: Duration) -> String {
    if time >= FOR_EVER { "for ever".to_owned() } else { duration_text(time) }
}

/// Returns a retry policy in the form in which users type it.
fn retries(policy: RetryPolicy) -> String {
    let backoff = match policy.backoff {
        Backoff::Constant { delay } => duration_text(delay),
        Backoff::Linear { initial, increment, maximum } => {
            format!("linear:{}:{}:{}", duration_text(initial), duration_text(increment), duration_text(maximum))
        }
        Backoff::Exponential { initial, maximum, .. } => {
            format!("exp:{}:{}", duration_text(initial), duration_text(maximum))
        }
        Backoff::ExponentialJitter { initial, maximum, .. } => {
            format!("jitter:{}:{}", duration_text(initial), duration_text(maximum))
        }
    };
    format!("{}, {backoff}", policy.attempts.saturating_sub(1))
}

/// Describes how a task is batched.
fn batched(aggregate: Aggregate) -> String {
    let Aggregate { size, delay, grace } = aggregate;
    format!("up to {size}, for {} and {} after the newest", duration_text(delay), duration_text(grace))
}

/// The number of dependencies of a blocked task that are shown; `--json` has all of them.
const SHOWN_DEPENDENCIES: usize = 20;

fn blocked_by(task: &TaskRecord) -> Option<String> {
    let shown = task.blocked_by.iter().take(SHOWN_DEPENDENCIES).map(ToString::to_string);
    let more = task.blocked_by.len().checked_sub(SHOWN_DEPENDENCIES).filter(|more| *more > 0);
    let words: Vec<String> = shown.chain(more.map(|more| format!("and {more} more"))).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the progress that a handler reported, in a few words.
pub(crate) fn progress(progress: &Progress) -> String {
    let fraction = progress.fraction.or_else(|| progress.bytes.and_then(ByteProgress::fraction)).map(percent);
    [fraction, progress.bytes.map(bytes_done), progress.message.clone()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

fn percent(fraction: f32) -> String {
    format!("{:.0} %", fraction * 100.0)
}

fn bytes_done(bytes: ByteProgress) -> String {
    match bytes.total {
        Some(total) => format!("({} of {})", size_text(bytes.done), size_text(total)),
        None => size_text(bytes.done),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is not negative, and is for people"
)]
fn forecast_text(forecast: Forecast) -> String {
    let estimated = forecast.fraction.filter(|_| forecast.is_estimated);
    let facts = [
        estimated.map(|fraction| format!("about {}, as long as such tasks take", percent(fraction))),
        forecast.bytes_per_second.map(|rate| format!("{}/s", size_text(rate as u64))),
        forecast.remaining.map(|remaining| format!("{} left", duration_text(remaining))),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns a number of bytes with about three digits: `512 B`, `1.50 KiB`, `27.0 MiB`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let power = (bytes.ilog2() / 10) as usize;
    let number = bytes as f64 / 1024f64.powi(i32::try_from(power).unwrap_or(0));
    let digits = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
    format!("{number:.digits$} {}", UNITS.get(power - 1).unwrap_or(&"EiB"))
}

/// Returns the bytes moved per kind of I/O, without zeros.
fn moved(io: Io) -> Option<String> {
    let kinds = IoKind::ALL.into_iter().filter(|kind| io.get(*kind) > 0);
    let words: Vec<String> = kinds.map(|kind| format!("{} {}", size_text(io.get(kind)), kind.name())).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn shown_bytes(bytes: &Bytes) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => one_line(text, SHOWN_COLUMNS),
        Err(_) => format!("{} bytes that are not text (--json shows them as base64)", bytes.len()),
    }
}
