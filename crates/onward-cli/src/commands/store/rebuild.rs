//! `onward store rebuild`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Arguments of `onward store rebuild`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file to read, even if the checksums of its pages are wrong; the store named by --store
    /// must not exist
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// Give each page of the new file a checksum; default: only if FILE has checksums
    #[arg(long)]
    page_checksums: bool,
}

/// Writes the content of a store to a new file.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { from, page_checksums } = arguments;
    let file = options.store.file("onward store copy writes a store there")?;
    if file.exists() {
        return Err(wrong_usage(format!(
            "the store {} exists and is not overwritten; name a new file with --store",
            options.store
        )));
    }
    store_file::rebuild(&from, file, page_checksums).await?;
    if options.json {
        print_json(&json!({ "rebuilt": file, "from": from }))?;
    } else {
        print_line(format_args!("rebuilt {} from {}", options.store, from.display()))?;
    }
    Ok(ExitCode::Done)
}
