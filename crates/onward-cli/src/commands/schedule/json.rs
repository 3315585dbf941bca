//! A schedule as JSON.

use onward_store::{Recurrence, ScheduleRecord};
use serde_json::{Value, json};

use crate::output::{bytes_field, in_seconds};

/// Returns all facts of a schedule. Durations are in seconds.
pub(super) fn schedule_json(record: &ScheduleRecord) -> anyhow::Result<Value> {
    let schedule = &record.schedule;
    let (every, cron, zone) = match &schedule.recurrence {
        Recurrence::Every(interval) => (Some(interval.as_secs_f64()), None, None),
        Recurrence::Cron { expression, zone } => (None, Some(expression), Some(zone)),
    };
    let mut task = in_seconds(serde_json::to_value(&schedule.task)?);
    if let Value::Object(task) = &mut task {
        task.remove("payload");
        bytes_field(task, "payload", Some(&schedule.task.payload));
    }
    Ok(json!({
        "schedule": schedule.name,
        "every": every,
        "cron": cron,
        "zone": zone,
        "starts_at": schedule.starts_at,
        "ends_at": schedule.ends_at,
        "jitter": schedule.jitter.as_secs_f64(),
        "overlap": schedule.overlap.as_str(),
        "catch_up": schedule.catch_up.to_string(),
        "provider": schedule.provider,
        "task": task,
        "paused": record.paused,
        "next": record.next,
        "pending_at": record.pending_at,
        "last": record.last,
        "error": record.error,
        "fired": record.fired,
        "skipped": record.skipped,
        "missed": record.missed,
        "failed": record.failed,
        "created_at": record.created_at,
        "revision": record.revision,
    }))
}
