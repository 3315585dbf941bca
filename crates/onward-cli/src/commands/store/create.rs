//! `onward store create`

use clap::Args;
use serde_json::json;

use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Arguments of `onward store create`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Give each page of the file a checksum: damage is then an error and never read as data, and
    /// only Onward may write to the file
    #[arg(long)]
    page_checksums: bool,
}

/// Creates an empty store.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let file = options.store.file("the first command that adds work makes the store there, such as onward submit")?;
    if file.exists() {
        return Err(wrong_usage(format!("the store {} exists; name another with --store", options.store)));
    }
    store_file::create(options, file, arguments.page_checksums).await?;
    if options.json {
        print_json(&json!({ "created": file, "page_checksums": arguments.page_checksums }))?;
    } else {
        print_line(format_args!("created {}", options.store))?;
    }
    Ok(ExitCode::Done)
}
