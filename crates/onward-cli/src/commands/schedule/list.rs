//! `onward schedule list`

use onward_store::{Recurrence, ScheduleRecord, Timestamp};

use super::command::open_to_read;
use super::json::schedule_json;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{
    Align, Table, duration_text, moment, moment_in, one_line, optional, print_json, print_table, remark,
};

/// The number of columns of an error that are shown; `onward schedule show` has all of it.
const ERROR_COLUMNS: usize = 60;

/// Lists the schedules.
pub(crate) async fn run(options: &GlobalOptions) -> anyhow::Result<ExitCode> {
    let schedules = open_to_read(options).await?.schedules().await?;
    if options.json {
        for schedule in &schedules {
            print_json(&schedule_json(schedule)?)?;
        }
    } else if schedules.is_empty() {
        remark("no schedules; onward schedule set makes one");
    } else {
        print_table(table(&schedules))?;
    }
    Ok(ExitCode::Done)
}

fn table(schedules: &[ScheduleRecord]) -> Table {
    let mut table = Table::new(vec![
        ("SCHEDULE", Align::Left),
        ("WHEN", Align::Left),
        ("KIND", Align::Left),
        ("NEXT", Align::Left),
        ("LAST", Align::Left),
        ("FIRED", Align::Right),
        ("SKIPPED", Align::Right),
        ("MISSED", Align::Right),
        ("FAILED", Align::Right),
        ("ERROR", Align::Left),
    ])
    .dropping(&["SKIPPED", "MISSED", "FAILED", "FIRED", "LAST", "KIND", "ERROR"]);
    for record in schedules {
        table.row(vec![
            record.schedule.name.to_string(),
            when(&record.schedule.recurrence),
            record.schedule.task.kind.to_string(),
            next(record),
            optional(record.last, |last| at(record, last.at)),
            record.fired.to_string(),
            record.skipped.to_string(),
            record.missed.to_string(),
            record.failed.to_string(),
            optional(record.error.as_ref(), |error| one_line(&error.message, ERROR_COLUMNS)),
        ]);
    }
    table
}

/// Returns the recurrence as it was set.
pub(super) fn when(recurrence: &Recurrence) -> String {
    match recurrence {
        Recurrence::Every(interval) => format!("every {}", duration_text(*interval)),
        Recurrence::Cron { expression, zone } => format!("{expression} {zone}"),
    }
}

/// Returns a moment in the time zone of a schedule.
pub(super) fn at(record: &ScheduleRecord, at: Timestamp) -> String {
    match &record.schedule.recurrence {
        Recurrence::Cron { zone, .. } if zone != "UTC" => moment_in(at, zone),
        Recurrence::Cron { .. } | Recurrence::Every(_) => moment(at),
    }
}

/// Returns the next firing, or why there is none.
pub(super) fn next(record: &ScheduleRecord) -> String {
    match record.next {
        _ if record.paused => "paused".to_owned(),
        Some(next) => at(record, next.at),
        None => "over".to_owned(),
    }
}
