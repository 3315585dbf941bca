//! Schedules.

use onward_store::{CatchUp, Name, NewSchedule, Overlap, Recurrence, ScheduleRecord, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::duration::DurationText;
use super::new_task::NewTaskBody;
use crate::http::problem::Problem;

/// A schedule.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScheduleBody {
    /// The name.
    name: String,
    /// The interval, if the schedule has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<DurationText>,
    /// The cron expression, if the schedule has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    /// The time zone of the cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    /// The kind of the tasks that it submits.
    kind: String,
    /// The queue of the tasks that it submits.
    queue: String,
    /// The effect of a firing while the task of the one before is active.
    overlap: String,
    /// The effect of missed firings: `none`, `last`, or a number.
    catch_up: String,
    /// The longest random delay of a firing.
    jitter: DurationText,
    /// The revision, which grows with each change and each firing. It is the `ETag`.
    revision: u64,
    /// True if the schedule is paused.
    paused: bool,
    /// The next firing; null if the schedule is over.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_at: Option<Timestamp>,
    /// The id of the task of the last firing.
    last_task: Option<String>,
    /// The last error.
    error: Option<String>,
    /// The number of firings.
    fired: u64,
    /// The number of skipped firings.
    skipped: u64,
    /// The number of missed firings.
    missed: u64,
    /// The number of failed firings.
    failed: u64,
    /// The time at which it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<ScheduleRecord> for ScheduleBody {
    fn from(record: ScheduleRecord) -> Self {
        let schedule = record.schedule;
        let (every, cron, zone) = match schedule.recurrence {
            Recurrence::Every(interval) => (Some(DurationText(interval)), None, None),
            Recurrence::Cron { expression, zone } => (None, Some(expression), Some(zone)),
        };
        Self {
            name: schedule.name.to_string(),
            every,
            cron,
            zone,
            kind: schedule.task.kind.to_string(),
            queue: schedule.task.queue.to_string(),
            overlap: schedule.overlap.to_string(),
            catch_up: schedule.catch_up.to_string(),
            jitter: DurationText(schedule.jitter),
            revision: record.revision,
            paused: record.paused,
            next_at: record.next.map(|next| next.at),
            last_task: record.last.map(|last| last.task.to_string()),
            error: record.error.map(|error| error.message),
            fired: record.fired,
            skipped: record.skipped,
            missed: record.missed,
            failed: record.failed,
            created_at: record.created_at,
        }
    }
}

/// A schedule to set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleChange {
    /// The interval, 100ms to 3660d; or else `cron`.
    every: Option<DurationText>,
    /// The cron expression, with five to seven fields.
    cron: Option<String>,
    /// The time zone of the cron expression, such as `Europe/Berlin`. Default: `UTC`.
    zone: Option<String>,
    /// The task to submit.
    task: NewTaskBody,
    /// The effect of a firing while the task of the one before is active: `skip`, `allow`,
    /// `queue-one` or `cancel-running`. Default: `skip`.
    overlap: Option<String>,
    /// The effect of missed firings: `none`, `last`, or a number from 1 to 1000. Default: `last`.
    catch_up: Option<String>,
    /// The longest random delay of a firing, at most a day. Default: none.
    jitter: Option<DurationText>,
    /// The time of the first firing at the earliest.
    #[schema(value_type = Option<String>, format = DateTime)]
    starts_at: Option<Timestamp>,
    /// The time before which all firings are.
    #[schema(value_type = Option<String>, format = DateTime)]
    ends_at: Option<Timestamp>,
}

impl ScheduleChange {
    pub(crate) fn of(self, name: Name) -> Result<NewSchedule, Problem> {
        let recurrence = match (self.every, self.cron) {
            (Some(interval), None) if self.zone.is_none() => Recurrence::Every(interval.0),
            (Some(_), None) => return Err(Problem::invalid("zone", "an interval has no time zone", "leave it out")),
            (None, Some(expression)) => {
                Recurrence::Cron { expression, zone: self.zone.unwrap_or_else(|| "UTC".to_owned()) }
            }
            _ => return Err(Problem::invalid("every", "a schedule has either `every` or `cron`", "set one of them")),
        };
        Ok(NewSchedule {
            overlap: read_policy::<Overlap>("overlap", self.overlap.as_deref())?,
            catch_up: read_policy::<CatchUp>("catch_up", self.catch_up.as_deref())?,
            jitter: self.jitter.map(|jitter| jitter.0).unwrap_or_default(),
            starts_at: self.starts_at,
            ends_at: self.ends_at,
            ..NewSchedule::new(name, recurrence, self.task.into_new_task(None)?)
        })
    }
}

/// Reads a policy by its name.
pub(crate) fn read_policy<T>(field: &str, text: Option<&str>) -> Result<T, Problem>
where
    T: std::str::FromStr<Err = onward_store::Error> + Default,
{
    let read = |text: &str| text.parse().map_err(|error| Problem::from(error).field(field));
    text.map_or_else(|| Ok(T::default()), read)
}
