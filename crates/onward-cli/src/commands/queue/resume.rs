//! `onward queue resume`

use onward_store::{StoreReads, Write};
use serde_json::json;

use super::scope::{Scoped, scope_text};
use crate::apply::apply_one;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Ends a pause.
pub(crate) async fn run(options: &GlobalOptions, scoped: Scoped) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    let scope = scoped.scope();
    let was_paused = store.pauses().await?.iter().any(|pause| pause.scope == scope);
    apply_one(&*store, Write::Resume { scope: scope.clone() }).await?;
    if options.json {
        print_json(&json!({ "resumed": scope, "was_paused": was_paused }))?;
    } else if !was_paused {
        print_line(format_args!("{} is not paused; onward stats lists the pauses", scope_text(&scope)))?;
    } else {
        print_line(format_args!("resumed {}", scope_text(&scope)))?;
    }
    Ok(ExitCode::Done)
}
