//! `onward account create`

use clap::Args;
use onward_server::http::{Accounts, NewAccount, Role};
use serde_json::json;

use crate::exit_code::ExitCode;
use crate::input::PasswordSource;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};

/// Arguments of `onward account create`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the account: letters, digits and . _ - + @; capital letters count as small ones
    pub(super) name: String,
    /// Role: viewer, operator, developer or admin; each may do what those before it may
    #[arg(long)]
    role: Role,
    /// The password.
    #[command(flatten)]
    password: PasswordSource,
}

/// Creates an account.
pub(super) async fn run(
    options: &GlobalOptions,
    accounts: &Accounts,
    arguments: Arguments,
) -> anyhow::Result<ExitCode> {
    let Arguments { name, role, password } = arguments;
    let password = password.read()?;
    let record = accounts.create(NewAccount { name, role, password }).await?;
    if options.json {
        print_json(&json!(record))?;
    } else {
        print_line(format_args!("account {} ({}) is created", record.name, record.role))?;
    }
    Ok(ExitCode::Done)
}
