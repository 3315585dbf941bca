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
    /// Create an empty store; commands that add work create one too, without checksums
    Create(create::Arguments),
    /// Copy the store into a new file while other processes work on it
    Backup(backup::Arguments),
    /// Copy a store that no process uses to another place: from SQLite to PostgreSQL, back, or
    /// between two of a kind
    #[cfg(feature = "postgres")]
    Copy(copy::Arguments),
    /// Create a store from a backup
    Restore(restore::Arguments),
    /// Write the content of a store to a new file: to add page checksums, or after another program
    /// has written to the store
    Rebuild(rebuild::Arguments),
    /// Forget ended tasks
    Prune(prune::Arguments),
    /// Return the space of removed tasks to the disk
    Compact,
    /// Migrate a store of an older version of Onward
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
