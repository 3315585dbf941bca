//! `onward store migrate`

use serde_json::json;

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Brings a store of an older version up to date.
pub(crate) async fn run(options: &GlobalOptions) -> anyhow::Result<ExitCode> {
    let file = options.store.file("a store there is brought up to date when a command opens it")?;
    let (from, to) = store_file::migrate(file).await?;
    if options.json {
        print_json(&json!({ "from": from, "to": to }))?;
    } else if from == to {
        print_line(format_args!("{} is up to date: schema {to}", options.store))?;
    } else {
        print_line(format_args!("migrated {} from schema {from} to {to}", options.store))?;
    }
    Ok(ExitCode::Done)
}
