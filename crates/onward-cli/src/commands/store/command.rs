//! The verbs of `onward store`.

use clap::Subcommand;

#[cfg(feature = "postgres")]
use super::copy;
use super::{backup, compact, migrate, prune, restore};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Copy the store into a new file while others work on it
    Backup(backup::Arguments),
    /// Copy a store that nobody works on to another place: from SQLite to PostgreSQL, back, or between two of a kind
    #[cfg(feature = "postgres")]
    Copy(copy::Arguments),
    /// Make a store out of a backup
    Restore(restore::Arguments),
    /// Forget ended tasks
    Prune(prune::Arguments),
    /// Give the room of removed tasks back to the disk
    Compact,
    /// Bring a store of an older version of Onward up to date
    Migrate,
}

/// Runs a verb.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Backup(arguments) => backup::run(options, arguments).await,
        #[cfg(feature = "postgres")]
        Command::Copy(arguments) => copy::run(options, arguments).await,
        Command::Restore(arguments) => restore::run(options, arguments).await,
        Command::Prune(arguments) => prune::run(options, arguments).await,
        Command::Compact => compact::run(options).await,
        Command::Migrate => migrate::run(options).await,
    }
}
