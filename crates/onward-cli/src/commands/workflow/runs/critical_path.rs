//! `onward workflow critical-path`

use clap::Args;
use onward::workflow::{CriticalPath, CriticalStep};
use onward_store::TaskId;

use crate::commands::run::colored;
use crate::commands::workflow::command::open_to_read;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, duration_text, print_json, print_line, print_table};

/// Arguments of `onward workflow critical-path`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The number of a run
    #[arg(value_name = "RUN")]
    run: TaskId,
}

const AFTER_HELP: &str = "\
Each step of the path was ready when the one before it ended, so their times add up to the duration. WAITED is the time
from being ready to the start; TOOK has delays, queues, attempts, items, timers and the time until people replied. The
SLACK of another step is the most by which it could have ended later without a later end of the run. In a run that has
not ended, the path ends with an open step, and times last until now.";

/// Prints the chain of steps that determined the duration of a run.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let path = open_to_read(options).await?.critical_path(arguments.run).await?;
    if options.json {
        print_json(&path)?;
        return Ok(ExitCode::Done);
    }
    let (phase, took) = (path.phase.as_str(), duration_text(path.took));
    print_line(format_args!("run {} of {} is {phase} after {took}", path.id, path.workflow))?;
    if path.steps.is_empty() {
        print_line("no step has started")?;
        return Ok(ExitCode::Done);
    }
    print_table(steps(&path))?;
    if !path.rest.is_zero() {
        print_line(format_args!("{} behind the last step", duration_text(path.rest)))?;
    }
    if !path.others.is_empty() {
        print_line("")?;
        print_table(others(&path))?;
    }
    Ok(ExitCode::Done)
}

fn steps(path: &CriticalPath) -> Table {
    let mut table = Table::new([
        ("STEP", Align::Left),
        ("KIND", Align::Left),
        ("STATE", Align::Left),
        ("ATTEMPTS", Align::Right),
        ("WAITED", Align::Right),
        ("TOOK", Align::Right),
        ("SHARE", Align::Right),
    ]);
    for CriticalStep { name, kind, state, attempts, waited, took, share, .. } in &path.steps {
        let share = format!("{:.1} %", share * 100.0);
        let (waited, took) = (duration_text(*waited), duration_text(*took));
        table.row([name.clone(), (*kind).to_owned(), colored(*state), attempts.to_string(), waited, took, share]);
    }
    table
}

fn others(path: &CriticalPath) -> Table {
    let mut table = Table::new([
        ("OTHER STEP", Align::Left),
        ("KIND", Align::Left),
        ("STATE", Align::Left),
        ("TOOK", Align::Right),
        ("SLACK", Align::Right),
    ]);
    for step in &path.others {
        let (took, slack) = (duration_text(step.took), duration_text(step.slack));
        table.row([step.name.clone(), step.kind.to_owned(), colored(step.state), took, slack]);
    }
    table
}
