//! `onward queue delete`

use onward_store::Write;
use serde_json::json;

use super::command::Queue;
use crate::apply::apply_one;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Forgets a queue.
pub(crate) async fn run(options: &GlobalOptions, Queue { queue }: Queue) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    apply_one(&*store, Write::DeleteQueue { queue: queue.clone() }).await?;
    if options.json {
        print_json(&json!({ "deleted": queue }))?;
    } else {
        print_line(format_args!("deleted queue {queue}"))?;
    }
    Ok(ExitCode::Done)
}
