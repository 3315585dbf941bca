//! `onward store copy`

use clap::Args;
use onward_store::CopyEnd;
use serde_json::json;

use crate::exit_code::{ExitCode, wrong_usage};
use crate::location::Location;
use crate::options::GlobalOptions;
use crate::output::{ProgressBar, Unit, counted, print_json, print_line};

/// Arguments of `onward store copy`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The store to copy; no process may be using it
    from: Location,
    /// The new location, without a store
    to: Location,
}

/// Copies a stopped store to another place, also to the other backend.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { from, to } = arguments;
    let bar = ProgressBar::new(options, Unit::Tasks, Some(0));
    let copied = onward_store::copy(end(&from)?, end(&to)?, |done, total| bar.set(done, total)).await?;
    bar.clear();
    let tasks = copied.tasks;
    if options.json {
        print_json(&json!({ "from": from.to_string(), "to": to.to_string(), "tasks": tasks }))?;
    } else {
        let tasks = counted(tasks, "task");
        print_line(format_args!("copied {from} with {tasks} to {to}; stop using {from} now"))?;
    }
    Ok(ExitCode::Done)
}

fn end(location: &Location) -> anyhow::Result<CopyEnd> {
    match location {
        Location::File(path) => Ok(CopyEnd::sqlite(path)),
        Location::Server(url) => Ok(CopyEnd::postgres(url)),
        Location::Http(_) => Err(wrong_usage(format!(
            "{location} is a server, and only a file or a database is copied; give its store, and stop the server"
        ))),
    }
}
