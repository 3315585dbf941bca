//! `onward account password`

use clap::Args;
use onward_server::http::{AccountChange, Accounts};

use super::change::{changed, unknown};
use crate::exit_code::ExitCode;
use crate::input::PasswordSource;
use crate::options::GlobalOptions;

/// Arguments of `onward account password`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the account
    pub(super) name: String,
    /// The password.
    #[command(flatten)]
    password: PasswordSource,
}

/// Sets another password.
pub(super) async fn run(
    options: &GlobalOptions,
    accounts: &Accounts,
    arguments: &Arguments,
) -> anyhow::Result<ExitCode> {
    // An unknown account is reported before the terminal asks for a password.
    accounts.get(&arguments.name).await?.ok_or_else(|| unknown(&arguments.name))?;
    let change = AccountChange { password: Some(arguments.password.read()?), ..AccountChange::default() };
    changed(options, accounts, &arguments.name, change, "has a new password, and its sessions have ended").await
}
