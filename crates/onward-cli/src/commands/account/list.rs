//! `onward account list`

use onward_server::http::{AccountRecord, Accounts};
use serde_json::json;

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, moment, one_line, print_json, print_table, remark};

/// The number of columns of a name that are shown.
const NAME_COLUMNS: usize = 40;

/// Lists the accounts.
pub(super) async fn run(options: &GlobalOptions, accounts: &Accounts) -> anyhow::Result<ExitCode> {
    let accounts = accounts.list().await?;
    if options.json {
        for account in &accounts {
            print_json(&json!(account))?;
        }
    } else if accounts.is_empty() {
        remark("no accounts; onward account create makes one");
    } else {
        print_table(table(&accounts))?;
    }
    Ok(ExitCode::Done)
}

fn table(accounts: &[AccountRecord]) -> Table {
    let columns = ["NAME", "ROLE", "STATE", "CREATED", "PASSWORD SET"];
    let mut table = Table::new(columns.map(|title| (title, Align::Left)));
    for account in accounts {
        table.row([
            one_line(&account.name, NAME_COLUMNS),
            account.role.to_string(),
            if account.is_disabled { "disabled" } else { "active" }.to_owned(),
            moment(account.created_at),
            moment(account.password_set_at),
        ]);
    }
    table
}
