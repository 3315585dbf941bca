//! `onward store backup`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{ProgressBar, Unit, print_json, print_line};
use crate::store_file;

/// Arguments of `onward store backup`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The new file; it must not exist
    #[arg(value_name = "FILE")]
    to: PathBuf,
}

/// Copies the state of the store at one moment.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let file = options.store.file("use pg_dump, which backs up a schema with --schema")?;
    let store = store_file::open_existing_file(options, file).await?;
    let bar = ProgressBar::new(options, Unit::Pages, Some(0));
    store.backup(&arguments.to, |done, total| bar.set(done, total)).await?;
    bar.clear();
    let bytes = std::fs::metadata(&arguments.to)?.len();
    if options.json {
        print_json(&json!({ "backup": arguments.to, "bytes": bytes }))?;
    } else {
        print_line(format_args!("backed {} up to {} ({bytes} bytes)", options.store, arguments.to.display()))?;
    }
    Ok(ExitCode::Done)
}
