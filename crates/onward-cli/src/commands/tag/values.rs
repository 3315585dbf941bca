//! `onward tag values`

use clap::Args;
use onward_store::{StoreReads, TagPage, TagValue, bounds};

use crate::commands::task::FilterArguments;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, one_line, print_json, print_table, remark};
use crate::store_file;

/// The widest value that a table shows, in columns.
const VALUE_COLUMNS: usize = 64;

/// Arguments of `onward tag values`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The tag's key
    #[arg(value_name = "KEY")]
    tag_key: String,
    #[command(flatten)]
    filter: FilterArguments,
    /// Only values after this one: the next page
    #[arg(long, value_name = "VALUE")]
    after: Option<String>,
    /// At most this many, up to 1000
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=bounds::PAGE as u64))]
    limit: u64,
}

/// Lists values.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let filter = arguments.filter.filter()?;
    let store = store_file::open_to_read(options).await?;
    let page = TagPage { after: arguments.after, limit: arguments.limit as usize };
    let page = store.tag_values(arguments.tag_key, filter, page).await?;
    if options.json {
        page.values.iter().try_for_each(print_json)?;
    } else if page.values.is_empty() {
        remark("no values");
    } else {
        print_table(table(&page.values))?;
    }
    if let Some(next) = page.next {
        remark(format_args!("there are more: --after {next:?}"));
    }
    Ok(ExitCode::Done)
}

fn table(values: &[TagValue]) -> Table {
    let mut table = Table::new([("VALUE", Align::Left), ("TASKS", Align::Right)]);
    for value in values {
        table.row([one_line(&value.value, VALUE_COLUMNS), value.tasks.to_string()]);
    }
    table
}
