//! `onward schedule set`

use std::time::Duration;

use clap::Args;
use onward_store::{CatchUp, Name, NewSchedule, Recurrence, Timestamp};
use serde_json::json;

use super::command::{OverlapPolicy, on};
use super::list::at;
use crate::commands::submit::TaskOptions;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;
use crate::values::{coming_time_in, parse_duration, parse_positive_duration};

/// Arguments of `onward schedule set`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The name of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: Name,
    #[command(flatten)]
    when: RecurrenceOptions,
    /// The time zone whose wall clock the cron expression follows, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", conflicts_with = "every")]
    zone: String,
    /// No firing before this time, from which an interval counts: '2026-11-27 12:00' and 'tomorrow
    /// 9:00' (in --zone), 2026-11-27T12:00:00Z
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// No firing at or after this time (written as for --start)
    #[arg(long, value_name = "TIME")]
    end: Option<String>,
    /// Delay each firing by a part of this, so that not everything starts at once; at most a day
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "0")]
    jitter: Duration,
    /// Action if a firing is due while the task of the previous one is active
    #[arg(long, value_name = "POLICY", default_value = "skip")]
    overlap: OverlapPolicy,
    /// Firings that are made up after no worker ran: none, last, or the number of the last ones (1
    /// to 1000)
    #[arg(long, value_name = "none|last|COUNT", default_value = "last")]
    catch_up: CatchUp,
    #[command(flatten)]
    task: TaskOptions,
}

/// The recurrence of a schedule.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct RecurrenceOptions {
    /// Fire at this interval, at whole multiples of it since 1970 (15m means every quarter of an
    /// hour)
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    every: Option<Duration>,
    /// Fire at the moments of a cron expression: minute, hour, day of month, month, day of week
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
}

impl Arguments {
    fn described(self) -> anyhow::Result<NewSchedule> {
        let task = self.task.task_with_payload()?;
        let [starts_at, ends_at] =
            [("--start", &self.start), ("--end", &self.end)].map(|(option, text)| moment_of(option, text, &self.zone));
        let recurrence = match (self.when.every, self.when.cron) {
            (Some(interval), _) => Recurrence::Every(interval),
            (None, cron) => Recurrence::Cron { expression: cron.unwrap_or_default(), zone: self.zone },
        };
        Ok(NewSchedule {
            overlap: self.overlap.into(),
            catch_up: self.catch_up,
            jitter: self.jitter,
            starts_at: starts_at?,
            ends_at: ends_at?,
            ..NewSchedule::new(self.schedule, recurrence, task)
        })
    }
}

fn moment_of(option: &str, text: &Option<String>, zone: &str) -> anyhow::Result<Option<Timestamp>> {
    let Some(text) = text else { return Ok(None) };
    let at = coming_time_in(zone, text).map_err(|why| wrong_usage(format!("{option}: {why}")))?;
    Ok(Some(at))
}

/// Creates or changes a schedule.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let schedule = arguments.described()?;
    let name = schedule.name.clone();
    let engine = on(store_file::open_to_edit(options, true).await?).await?;
    let set = engine.set_schedule(schedule).await?;
    let record = engine.find_schedule(&name).await?;
    if options.json {
        print_json(&json!({ "schedule": name, "set": set, "next": record.next }))?;
    } else {
        let next = record.next.map(|next| format!("; next at {}", at(&record, next.at))).unwrap_or_default();
        print_line(format_args!("schedule {name} {set}{next}"))?;
    }
    Ok(ExitCode::Done)
}
