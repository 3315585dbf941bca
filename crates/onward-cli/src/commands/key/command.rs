//! The verbs of `onward key`.

use clap::Subcommand;
use onward_server::http::Keys;

use super::{create, list, revoke};
use crate::audit::audited;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::store_file;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a key and print it; it is shown once
    Create(create::Arguments),
    /// List the keys
    List,
    /// Revoke a key: every server refuses it from now on
    Revoke(revoke::Arguments),
}

/// Runs a verb.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    let store = match &command {
        Command::Create(_) => store_file::open_or_create(options).await?,
        Command::List => store_file::open_to_read(options).await?,
        Command::Revoke(_) => store_file::open_existing(options).await?,
    };
    match command {
        Command::Create(arguments) => {
            let object = format!("key {}", arguments.name);
            let change = |store| async move { create::run(options, &Keys::new(store), arguments).await };
            audited(store, "key create", object, change).await
        }
        Command::List => list::run(options, &Keys::new(store)).await,
        Command::Revoke(arguments) => {
            let object = format!("key {}", arguments.key);
            let change = |store| async move { revoke::run(options, &Keys::new(store), &arguments).await };
            audited(store, "key revoke", object, change).await
        }
    }
}
