//! `onward store compact`

use serde_json::json;

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Returns the space of removed tasks to the disk.
pub(crate) async fn run(options: &GlobalOptions) -> anyhow::Result<ExitCode> {
    let file = options.store.file("autovacuum reuses the space there, and VACUUM FULL returns it to the disk")?;
    let store = store_file::open_existing_file(options, file).await?;
    let compacted = store.compact().await?;
    if options.json {
        print_json(&json!({ "bytes_before": compacted.before, "bytes_after": compacted.after }))?;
    } else {
        print_line(format_args!("compacted {} from {} to {} bytes", options.store, compacted.before, compacted.after))?;
    }
    Ok(ExitCode::Done)
}
