//! `onward schedule set`

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use onward_store::rules::retry::Backoff;
use onward_store::{CatchUp, Name, NewSchedule, NewTask, Priority, Recurrence, Timestamp, Ttl, TtlFrom};
use serde_json::json;

use super::command::{OverlapPolicy, on};
use crate::commands::submit::{read_payload, retry_policy};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{moment, print_json, print_line};
use crate::store_file;
use crate::values::{parse_backoff, parse_duration, parse_positive_duration};

/// Arguments of `onward schedule set`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Its name
    #[arg(value_name = "SCHEDULE")]
    schedule: Name,
    #[command(flatten)]
    when: When,
    /// The time zone whose wall clock the cron expression follows, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", conflicts_with = "every")]
    zone: String,
    /// No firing before this time (RFC 3339); an interval counts from it
    #[arg(long, value_name = "TIME")]
    start: Option<Timestamp>,
    /// No firing at or after this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    end: Option<Timestamp>,
    /// Put each firing off by a part of this, so that not everything starts at once; at most a day
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "0")]
    jitter: Duration,
    /// What to do when a firing comes while the task of the one before is active
    #[arg(long, value_name = "POLICY", default_value = "skip")]
    overlap: OverlapPolicy,
    /// What becomes of firings that were missed while no worker ran: none, last, or how many of the last ones fire (1 to 1000)
    #[arg(long, value_name = "none|last|COUNT", default_value = "last")]
    catch_up: CatchUp,
    #[command(flatten)]
    task: Task,
}

/// When it fires.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct When {
    /// Fire every so often, at whole multiples of the interval since 1970 (so 15m means at the quarters of each hour)
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    every: Option<Duration>,
    /// Fire at the moments of a cron expression: minute, hour, day of month, month, day of week
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
}

/// What it submits.
#[derive(Debug, Args)]
struct Task {
    /// The kind of its tasks, which selects a handler
    #[arg(long)]
    kind: Name,
    /// The queue they wait in
    #[arg(long, default_value = "default")]
    queue: Name,
    /// How urgent they are: 0 to 255, higher first
    #[arg(long, default_value_t = Priority::NORMAL.0)]
    priority: u8,
    /// Expire when one has not started after this long
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    ttl: Option<Duration>,
    /// How long one attempt may take
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    timeout: Option<Duration>,
    /// Further attempts after a failed one; default: as the worker says
    #[arg(long, value_name = "COUNT")]
    retries: Option<u32>,
    /// Time between attempts: 5s, linear:1s:1s:1m, exp:1s:1m or jitter:1s:1m
    #[arg(long, value_name = "BACKOFF", value_parser = parse_backoff)]
    backoff: Option<Backoff>,
    /// Read the payload from a file
    #[arg(long, value_name = "FILE", conflicts_with = "payload")]
    payload_file: Option<PathBuf>,
    /// The payload; - for stdin; default: empty
    #[arg(value_name = "PAYLOAD")]
    payload: Option<String>,
}

impl Task {
    fn described(self, payload: Bytes) -> NewTask {
        NewTask {
            queue: self.queue,
            payload,
            priority: Priority(self.priority),
            ttl: self.ttl.map(|duration| Ttl { duration, from: TtlFrom::Submission }),
            timeout: self.timeout,
            retry: retry_policy(self.retries, self.backoff),
            ..NewTask::of(self.kind)
        }
    }
}

impl Arguments {
    fn described(self) -> anyhow::Result<NewSchedule> {
        let payload = read_payload(self.task.payload_file.as_deref(), self.task.payload.as_deref())?;
        let recurrence = match (self.when.every, self.when.cron) {
            (Some(interval), _) => Recurrence::Every(interval),
            (None, cron) => Recurrence::Cron { expression: cron.unwrap_or_default(), zone: self.zone },
        };
        Ok(NewSchedule {
            overlap: self.overlap.into(),
            catch_up: self.catch_up,
            jitter: self.jitter,
            starts_at: self.start,
            ends_at: self.end,
            ..NewSchedule::new(self.schedule, recurrence, self.task.described(payload))
        })
    }
}

/// Makes or changes a schedule.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let schedule = arguments.described()?;
    let name = schedule.name.clone();
    let engine = on(store_file::open_or_create(options).await?).await?;
    let set = engine.set_schedule(schedule).await?;
    let next = engine.find_schedule(&name).await?.next;
    if options.json {
        print_json(&json!({ "schedule": name, "set": set, "next": next }))?;
    } else {
        let next = next.map(|next| format!("; next at {}", moment(next.at))).unwrap_or_default();
        print_line(format_args!("schedule {name} {set}{next}"))?;
    }
    Ok(ExitCode::Done)
}
