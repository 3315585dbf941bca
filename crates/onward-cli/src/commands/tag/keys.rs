//! `onward tag keys`

use clap::Args;
use onward_store::{StoreReads, TagPage, bounds};
use serde_json::json;

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line, remark};
use crate::store_file;

/// Arguments of `onward tag keys`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only keys with this prefix
    #[arg(value_name = "PREFIX", default_value = "")]
    prefix: String,
    /// Only keys after this one: the next page
    #[arg(long, value_name = "KEY")]
    after: Option<String>,
    /// At most this many, up to 1000
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=bounds::PAGE as u64))]
    limit: u64,
}

/// Lists keys.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let page = TagPage { after: arguments.after, limit: arguments.limit as usize };
    let page = store.tag_keys(arguments.prefix, page).await?;
    for key in &page.keys {
        if options.json {
            print_json(&json!({ "key": key }))?;
        } else {
            print_line(key)?;
        }
    }
    if page.keys.is_empty() && !options.json {
        remark("no keys");
    }
    if let Some(next) = page.next {
        remark(format_args!("there are more: --after {next:?}"));
    }
    Ok(ExitCode::Done)
}
