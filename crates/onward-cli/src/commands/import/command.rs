//! The sources of `onward import`.

use clap::Subcommand;

use super::crontab;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// The sources.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a schedule of each line of a crontab
    Crontab(crontab::Arguments),
}

/// Imports from a source.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Crontab(arguments) => crontab::run(options, arguments).await,
    }
}
