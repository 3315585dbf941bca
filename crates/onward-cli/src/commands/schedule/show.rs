//! `onward schedule show`

use std::fmt::Write as _;
use std::time::Duration;

use onward_store::{Priority, ScheduleRecord, Tags};

use super::command::{Schedule, open_to_read};
use super::json::schedule_json;
use super::list::{at, next, when};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{duration_text, indented, moment, one_line, print_json, print_line};

/// The number of columns of a payload that are shown; `--json` has all of it.
const PAYLOAD_COLUMNS: usize = 400;

/// Shows one schedule.
pub(crate) async fn run(options: &GlobalOptions, Schedule { schedule }: Schedule) -> anyhow::Result<ExitCode> {
    let record = open_to_read(options).await?.find_schedule(&schedule).await?;
    if options.json {
        print_json(&schedule_json(&record)?)?;
    } else {
        print_line(described(&record))?;
    }
    Ok(ExitCode::Done)
}

/// Returns the schedule, one fact per line.
fn described(record: &ScheduleRecord) -> String {
    let schedule = &record.schedule;
    let jitter = Some(schedule.jitter).filter(|jitter| *jitter > Duration::ZERO);
    let last = record.last.map(|last| format!("{} as task {}", at(record, last.at), last.task));
    let priority = Some(schedule.task.priority).filter(|priority| *priority != Priority::NORMAL);
    let payload = Some(&schedule.task.payload).filter(|payload| !payload.is_empty());
    let error = record.error.as_ref().map(|error| format!("at {}: {}", moment(error.at), indented(&error.message)));
    let counts = [record.fired, record.skipped, record.missed, record.failed];
    let [fired, skipped, missed, failed] = counts;
    let facts = [
        ("schedule", Some(schedule.name.to_string())),
        ("when", Some(when(&schedule.recurrence))),
        ("starts", schedule.starts_at.map(moment)),
        ("ends", schedule.ends_at.map(moment)),
        ("jitter", jitter.map(duration_text)),
        ("overlap", Some(schedule.overlap.to_string())),
        ("catch-up", Some(schedule.catch_up.to_string())),
        ("provider", schedule.provider.as_ref().map(ToString::to_string)),
        ("kind", Some(schedule.task.kind.to_string())),
        ("queue", Some(schedule.task.queue.to_string())),
        ("group", schedule.task.group.as_ref().map(ToString::to_string)),
        ("priority", priority.map(|priority| priority.0.to_string())),
        ("key", schedule.task.unique.as_ref().map(|unique| one_line(&unique.key, PAYLOAD_COLUMNS))),
        ("tags", Some(tags(&schedule.task.tags)).filter(|tags| !tags.is_empty())),
        ("payload", payload.map(|payload| one_line(&String::from_utf8_lossy(payload), PAYLOAD_COLUMNS))),
        ("next", Some(next(record))),
        ("pending_at", record.pending_at.map(moment)),
        ("last", last),
        ("firings", Some(format!("{fired} fired, {skipped} skipped, {missed} missed, {failed} failed"))),
        ("error", error),
    ];
    let mut text = String::new();
    for (name, value) in facts.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        let _ = writeln!(text, "{name:<12} {value}");
    }
    text.truncate(text.trim_end().len());
    text
}

fn tags(tags: &Tags) -> String {
    let tags = tags.iter().map(|(key, value)| format!("{key}={}", one_line(value, PAYLOAD_COLUMNS)));
    tags.collect::<Vec<_>>().join(", ")
}
