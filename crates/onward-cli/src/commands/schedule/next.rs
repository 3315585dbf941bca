//! `onward schedule next`

use clap::Args;

use super::command::{Schedule, open_to_read};
use super::list::at;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line, remark};

/// Arguments of `onward schedule next`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    schedule: Schedule,
    /// Number of firings
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
}

/// Shows the next firings of a schedule.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (engine, name) = (open_to_read(options).await?, arguments.schedule.schedule);
    let record = engine.find_schedule(&name).await?;
    let firings = engine.upcoming(&name, usize::from(arguments.count)).await?;
    for firing in &firings {
        if options.json {
            print_json(firing)?;
        } else {
            print_line(at(&record, firing.at))?;
        }
    }
    if record.paused {
        remark("the schedule is paused, and fires none of these until it is resumed");
    } else if firings.is_empty() {
        remark("the schedule is over");
    }
    Ok(ExitCode::Done)
}
