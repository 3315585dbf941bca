//! The verbs of `onward limit`.

use clap::Subcommand;

use super::{clear, list, scope, set};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the limits and their usage
    List,
    /// Limit how many tasks run at once or how fast they start, while workers run
    Set(set::Arguments),
    /// Remove a limit
    Clear(scope::Scoped),
}

/// Runs a verb.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List => list::run(options).await,
        Command::Set(arguments) => set::run(options, arguments).await,
        Command::Clear(scope) => clear::run(options, scope).await,
    }
}
