//! Changes of an account without its password.

use clap::Args;
use onward_server::http::{AccountChange, AccountRecord, Accounts, Role};
use serde_json::json;

use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};

/// The account of a change.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the account
    pub(super) name: String,
}

/// Arguments of `onward account role`.
#[derive(Debug, Args)]
pub(crate) struct RoleArguments {
    /// Name of the account
    pub(super) name: String,
    /// Role: viewer, operator, developer or admin
    role: Role,
}

/// Sets another role.
pub(super) async fn set_role(
    options: &GlobalOptions,
    accounts: &Accounts,
    arguments: &RoleArguments,
) -> anyhow::Result<ExitCode> {
    let change = AccountChange { role: Some(arguments.role), ..AccountChange::default() };
    changed(options, accounts, &arguments.name, change, &format!("has the role {}", arguments.role)).await
}

/// Disables or enables an account.
pub(super) async fn disable(
    options: &GlobalOptions,
    accounts: &Accounts,
    arguments: &Arguments,
    disables: bool,
) -> anyhow::Result<ExitCode> {
    let change = AccountChange { disable: Some(disables), ..AccountChange::default() };
    let text = if disables { "is disabled, and its sessions have ended" } else { "can sign in again" };
    changed(options, accounts, &arguments.name, change, text).await
}

/// Deletes an account.
pub(super) async fn delete(
    options: &GlobalOptions,
    accounts: &Accounts,
    arguments: &Arguments,
) -> anyhow::Result<ExitCode> {
    let deleted = accounts.delete(&arguments.name).await?;
    report(options, &arguments.name, deleted, "is deleted, and its sessions have ended")
}

/// Changes an account and prints it.
pub(super) async fn changed(
    options: &GlobalOptions,
    accounts: &Accounts,
    name: &str,
    change: AccountChange,
    text: &str,
) -> anyhow::Result<ExitCode> {
    report(options, name, accounts.change(name, change).await?, text)
}

fn report(options: &GlobalOptions, name: &str, record: Option<AccountRecord>, text: &str) -> anyhow::Result<ExitCode> {
    let record = record.ok_or_else(|| unknown(name))?;
    if options.json {
        print_json(&json!(record))?;
    } else {
        print_line(format_args!("account {} {text}", record.name))?;
    }
    Ok(ExitCode::Done)
}

pub(super) fn unknown(name: &str) -> anyhow::Error {
    wrong_usage(format!("there is no account `{name}`; onward account list shows the accounts"))
}
