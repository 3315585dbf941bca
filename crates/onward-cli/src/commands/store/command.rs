//! The verbs of `onward store`.

use clap::Subcommand;

#[cfg(feature = "postgres")]
use super::copy;
use super::{backup, compact, create, migrate, prune, rebuild, restore};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make an empty store; commands that add work make one too, without checksums
    Create(create::Arguments),
    /// Copy the store into a new file while others work on it
    Backup(backup::Arguments),
    /// Copy a store that nobody works on to another place: from SQLite to PostgreSQL, back, or
    /// between two of a kind
    #[cfg(feature = "postgres")]
    Copy(copy::Arguments),
    /// Make a store out of a backup
    Restore(restore::Arguments),
    /// Write a store anew into another file: to give its pages checksums, or after another program
    /// has written to it
    Rebuild(rebuild::Arguments),
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
        Command::Create(arguments) => create::run(options, arguments).await,
        Command::Backup(arguments) => backup::run(options, arguments).await,
        #[cfg(feature = "postgres")]
        Command::Copy(arguments) => copy::run(options, arguments).await,
        Command::Restore(arguments) => restore::run(options, arguments).await,
        Command::Rebuild(arguments) => rebuild::run(options, arguments).await,
        Command::Prune(arguments) => prune::run(options, arguments).await,
        Command::Compact => compact::run(options).await,
        Command::Migrate => migrate::run(options).await,
    }
}
