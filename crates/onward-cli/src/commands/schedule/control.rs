//! `onward schedule pause`, `resume` and `delete`

use onward_store::Name;
use serde_json::json;

use super::command::{Schedule, open};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};

/// Pauses a schedule.
pub(crate) async fn pause(options: &GlobalOptions, Schedule { schedule }: Schedule) -> anyhow::Result<ExitCode> {
    open(options).await?.pause_schedule(&schedule).await?;
    report_done(options, "paused", &schedule)
}

/// Ends the pause of a schedule.
pub(crate) async fn resume(options: &GlobalOptions, Schedule { schedule }: Schedule) -> anyhow::Result<ExitCode> {
    open(options).await?.resume_schedule(&schedule).await?;
    report_done(options, "resumed", &schedule)
}

/// Forgets a schedule.
pub(crate) async fn delete(options: &GlobalOptions, Schedule { schedule }: Schedule) -> anyhow::Result<ExitCode> {
    open(options).await?.delete_schedule(&schedule).await?;
    report_done(options, "deleted", &schedule)
}

fn report_done(options: &GlobalOptions, done: &str, schedule: &Name) -> anyhow::Result<ExitCode> {
    if options.json {
        print_json(&json!({ done: schedule }))?;
    } else {
        print_line(format_args!("{done} schedule {schedule}"))?;
    }
    Ok(ExitCode::Done)
}
