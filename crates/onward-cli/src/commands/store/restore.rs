//! `onward store restore`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{ProgressBar, Unit, print_json, print_line};
use crate::store_file;

/// Arguments of `onward store restore`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The backup; the store named by --store must not exist
    #[arg(value_name = "FILE")]
    backup: PathBuf,
}

/// Creates the store from a backup. Never overwrites an existing store.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let file = options
        .store
        .file("use pg_restore for a backup of pg_dump, or onward store copy FILE URL for a backup of a file")?;
    if file.exists() {
        return Err(wrong_usage(format!(
            "the store {} exists and is not overwritten; move it away first, or name another with --store",
            options.store
        )));
    }
    let bar = ProgressBar::new(options, Unit::Pages, Some(0));
    store_file::restore(&arguments.backup, file, |done, total| bar.set(done, total)).await?;
    bar.clear();
    if options.json {
        print_json(&json!({ "restored": file, "from": arguments.backup }))?;
    } else {
        print_line(format_args!("restored {} from {}", options.store, arguments.backup.display()))?;
    }
    Ok(ExitCode::Done)
}
