//! `onward orchestration wait`

use std::time::Duration;

use clap::Args;

use super::named::Orchestrations;
use crate::commands::task;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::store_file;
use crate::values::parse_positive_duration;

/// Arguments of `onward orchestration wait`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    orchestrations: Orchestrations,
    /// Give up after this long, with exit code 1; default: wait for ever
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    timeout: Option<Duration>,
}

/// Waits for each of the orchestrations.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    let numbers = arguments.orchestrations.numbers(&*store).await?;
    task::wait_for_all_within(options, &*store, &numbers, arguments.timeout).await
}
