//! `onward store prune`

use std::time::Duration;

use clap::Args;
use onward_store::{Outcome, Prune, Store, Write};
use serde_json::json;

use crate::apply::{apply_one, unexpected};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{ProgressBar, Unit, counted, print_json, print_line};
use crate::store_file;
use crate::values::parse_duration;

/// The tasks that one write forgets. The bound keeps a write from blocking other writers for long.
const CHUNK: usize = 1000;

/// Arguments of `onward store prune`.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Arguments {
    /// Forget tasks that ended longer ago than this, except those submitted with --retention
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    older_than: Option<Duration>,
    /// Forget the oldest ended tasks, so that this many remain in addition to those submitted with
    /// --retention
    #[arg(long, value_name = "COUNT")]
    keep: Option<u64>,
}

/// Forgets ended tasks. Always includes those whose own retention has expired.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    let bar = ProgressBar::new(options, Unit::Tasks, None);
    let removed = prune(&*store, &arguments, &bar).await?;
    bar.clear();
    if options.json {
        print_json(&json!({ "removed": removed }))?;
    } else {
        print_line(format_args!("removed {}", counted(removed, "ended task")))?;
    }
    Ok(ExitCode::Done)
}

async fn prune(store: &dyn Store, arguments: &Arguments, bar: &ProgressBar) -> anyhow::Result<u64> {
    let mut removed = 0;
    loop {
        let prune = Prune { older_than: arguments.older_than, keep: arguments.keep, limit: CHUNK };
        match apply_one(store, Write::Prune(prune)).await? {
            Outcome::Removed { tasks, more } => {
                removed += tasks;
                bar.set_position(removed);
                if !more {
                    return Ok(removed);
                }
            }
            other => return Err(unexpected(other)),
        }
    }
}
