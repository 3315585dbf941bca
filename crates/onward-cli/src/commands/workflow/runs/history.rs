//! `onward workflow history`

use clap::Args;
use onward::workflow::RunHistoryEntry;
use onward_store::TaskId;

use crate::commands::workflow::command::open_to_read;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{moment, one_line, print_json, print_line};

/// The columns that are shown of an event.
const COLUMNS: usize = 200;

/// Arguments of `onward workflow history`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The number of the run
    #[arg(value_name = "RUN")]
    run: TaskId,
}

/// Prints the events of a run in order.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let engine = open_to_read(options).await?;
    let mut history = engine.run_history(arguments.run).await?;
    loop {
        let entries = history.next().await?;
        if entries.is_empty() {
            return Ok(ExitCode::Done);
        }
        for entry in &entries {
            if options.json {
                print_json(entry)?;
            } else {
                print_line(line(entry))?;
            }
        }
    }
}

fn line(entry: &RunHistoryEntry) -> String {
    let name = entry.event.replace('_', " ");
    let part = |prefix: &str, text: &Option<String>| text.as_deref().map(|text| format!("{prefix}{text}"));
    let parts = [
        part(" ", &entry.step),
        part(": ", &entry.detail),
        part(" by ", &entry.actor),
        part(", because ", &entry.reason),
    ];
    let rest: String = parts.into_iter().flatten().collect();
    format!("{} {}", moment(entry.at), one_line(&format!("{name}{rest}"), COLUMNS))
}
