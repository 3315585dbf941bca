//! The verbs of `onward tag`.

use clap::Subcommand;

use super::{keys, values};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the keys of tags
    Keys(keys::Arguments),
    /// List the values of a tag's key, and how many tasks have each
    Values(Box<values::Arguments>),
}

/// Runs a verb.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Keys(arguments) => keys::run(options, arguments).await,
        Command::Values(arguments) => values::run(options, *arguments).await,
    }
}
