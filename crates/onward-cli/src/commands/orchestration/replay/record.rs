//! `onward orchestration record`

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use onward::Engine;
use onward_store::{Page, Store, StoreReads, TaskFilter, TaskRecord, bounds};
use serde_json::json;

use crate::commands::task::FilterArguments;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{counted, print_json, print_line, remark};
use crate::store_file;
use crate::values::parse_row_count;

/// The extension of files with histories.
pub(in crate::commands::orchestration) const EXTENSION: &str = "cbor";

/// Arguments of `onward orchestration record`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory; it is created if it is missing
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    #[command(flatten)]
    filter: FilterArguments,
    /// At most this many, the newest
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = parse_row_count)]
    limit: usize,
}

/// Writes the histories of orchestrations to files in a directory, one for each.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { directory, filter, limit } = arguments;
    let filter = TaskFilter { orchestration: Some(true), ..filter.filter()? };
    let store = store_file::open_to_read(options).await?;
    let engine = Engine::builder().store(Arc::clone(&store)).open().await?;
    let unwritten = || format!("the directory {} could not be written", directory.display());
    tokio::fs::create_dir_all(&directory).await.with_context(unwritten)?;
    let mut written = 0;
    for task in newest(&*store, filter, limit).await? {
        let recorded = engine.record_history(task.id).await?;
        let events = recorded.events.len();
        if events == 0 {
            continue;
        }
        let file = directory.join(file_name(&task));
        tokio::fs::write(&file, recorded.to_bytes()?).await.with_context(unwritten)?;
        written += 1;
        if options.json {
            print_json(&json!({ "id": task.id, "kind": task.kind, "events": events, "file": file }))?;
        } else {
            let events = counted(events as u64, "event");
            print_line(format_args!("{events} of orchestration {} written to {}", task.id, file.display()))?;
        }
    }
    if written == 0 {
        remark("no orchestration has started");
    }
    Ok(ExitCode::Done)
}

async fn newest(store: &dyn Store, filter: TaskFilter, limit: usize) -> anyhow::Result<Vec<TaskRecord>> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = Page { before, limit: limit.saturating_sub(found.len()).min(bounds::PAGE) };
        let page = store.tasks(filter.clone(), page).await?;
        found.extend(page.tasks);
        before = page.next;
        if before.is_none() || found.len() >= limit {
            return Ok(found);
        }
    }
}

/// Returns a file name from kind and number, without characters that a file system may reject.
fn file_name(task: &TaskRecord) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let kind: String = task.kind.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    format!("{kind}-{}.{EXTENSION}", task.id)
}
