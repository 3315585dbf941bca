//! `onward store migrate`

use std::fmt::Display;

use serde_json::json;

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Migrates a store of an older version.
pub(crate) async fn run(options: &GlobalOptions) -> anyhow::Result<ExitCode> {
    let file = options.store.file("a store there is migrated when a command opens it")?;
    let (from, to) = store_file::migrate(file).await?;
    if options.json {
        print_json(&json!({ "from": from, "to": to }))?;
    } else {
        print_line(text(&options.store, from, to))?;
    }
    Ok(ExitCode::Done)
}

fn text(store: &dyn Display, from: u32, to: u32) -> String {
    if from == to {
        format!("{store} is up to date: schema {to}")
    } else {
        format!("migrated {store} from schema {from} to {to}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_before_and_after_are_reported() {
        assert_eq!(text(&"onward.db", 1, 2), "migrated onward.db from schema 1 to 2");
        assert_eq!(text(&"onward.db", 2, 2), "onward.db is up to date: schema 2");
    }
}
