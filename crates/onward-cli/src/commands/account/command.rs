//! The verbs of `onward account`.

use clap::Subcommand;
use onward_server::http::Accounts;

use super::{change, create, list, password};
use crate::audit::audited;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::store_file;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create an account; asks for its password
    Create(create::Arguments),
    /// List the accounts
    List,
    /// Set another role; sessions have it from their next request on
    Role(change::RoleArguments),
    /// Set another password and end all sessions of the account; asks for the password
    Password(password::Arguments),
    /// Refuse sign-ins and end all sessions of an account
    Disable(change::Arguments),
    /// Allow the sign-ins of a disabled account again
    Enable(change::Arguments),
    /// Delete an account and end its sessions
    Delete(change::Arguments),
}

/// Runs a verb.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    let store = match &command {
        Command::Create(_) => store_file::open_or_create(options).await?,
        Command::List => store_file::open_to_read(options).await?,
        _ => store_file::open_existing(options).await?,
    };
    if let Command::List = command {
        return list::run(options, &Accounts::new(store)).await;
    }
    let (verb, name) = command.subject();
    let (verb, object) = (format!("account {verb}"), format!("account {}", name.to_ascii_lowercase()));
    let change = |store| async move { change(options, &Accounts::new(store), command).await };
    audited(store, &verb, object, change).await
}

async fn change(options: &GlobalOptions, accounts: &Accounts, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Create(arguments) => create::run(options, accounts, arguments).await,
        Command::List => list::run(options, accounts).await,
        Command::Role(arguments) => change::set_role(options, accounts, &arguments).await,
        Command::Password(arguments) => password::run(options, accounts, &arguments).await,
        Command::Disable(arguments) => change::disable(options, accounts, &arguments, true).await,
        Command::Enable(arguments) => change::disable(options, accounts, &arguments, false).await,
        Command::Delete(arguments) => change::delete(options, accounts, &arguments).await,
    }
}

impl Command {
    /// Returns the verb and the name of the account.
    fn subject(&self) -> (&'static str, &str) {
        match self {
            Self::Create(arguments) => ("create", &arguments.name),
            Self::List => ("list", ""),
            Self::Role(arguments) => ("role", &arguments.name),
            Self::Password(arguments) => ("password", &arguments.name),
            Self::Disable(arguments) => ("disable", &arguments.name),
            Self::Enable(arguments) => ("enable", &arguments.name),
            Self::Delete(arguments) => ("delete", &arguments.name),
        }
    }
}
