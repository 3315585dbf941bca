//! `onward schedule trigger`

use clap::Args;
use onward_store::Firing;

use super::command::{OverlapPolicy, Schedule, open};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};

/// Arguments of `onward schedule trigger`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    schedule: Schedule,
    /// Action while the task of the previous firing is active; default: the schedule's policy
    #[arg(long, value_name = "POLICY")]
    overlap: Option<OverlapPolicy>,
}

/// Fires a schedule once now.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let engine = open(options).await?;
    let firing = engine.trigger_schedule(&arguments.schedule.schedule, arguments.overlap.map(Into::into)).await?;
    if options.json {
        print_json(&firing)?;
    } else {
        print_line(text(&firing))?;
    }
    Ok(if matches!(firing, Firing::Failed { .. }) { ExitCode::Failed } else { ExitCode::Done })
}

/// Describes the outcome of a firing for people.
pub(super) fn text(firing: &Firing) -> String {
    match firing {
        Firing::Submitted { task } => format!("task {task} submitted"),
        Firing::Skipped { active } => format!("skipped: task {active} is active"),
        Firing::Pending { behind } => format!("held until task {behind} has ended"),
        Firing::Failed { message } => format!("failed: {message}"),
    }
}
