//! `onward key list`

use onward_server::http::{KeyRecord, KeyState, Keys};
use serde_json::json;

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, moment, one_line, optional, print_json, print_table, remark};

/// The number of columns of a name that are shown.
const NAME_COLUMNS: usize = 40;

/// Lists the keys.
pub(super) async fn run(options: &GlobalOptions, keys: &Keys) -> anyhow::Result<ExitCode> {
    let keys = keys.list().await?;
    if options.json {
        for key in &keys {
            print_json(&json!(key))?;
        }
    } else if keys.is_empty() {
        remark("no keys; onward key create makes one");
    } else {
        print_table(table(&keys))?;
    }
    Ok(ExitCode::Done)
}

fn table(keys: &[KeyRecord]) -> Table {
    let columns = ["KEY", "NAME", "ROLE", "STATE", "CREATED", "EXPIRES"];
    let mut table = Table::new(columns.map(|title| (title, Align::Left)));
    for key in keys {
        table.row([
            key.id.clone(),
            one_line(&key.name, NAME_COLUMNS),
            key.role.to_string(),
            state(key.state).to_owned(),
            moment(key.created_at),
            optional(key.expires_at, moment),
        ]);
    }
    table
}

/// Returns the name of a state.
fn state(state: KeyState) -> &'static str {
    match state {
        KeyState::Active => "active",
        KeyState::Expired => "expired",
        KeyState::Revoked => "revoked",
    }
}
