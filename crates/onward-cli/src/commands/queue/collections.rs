//! `onward queue collections`

use clap::Args;
use onward_store::{CollectionRecord, CollectionSelection, Name, StoreReads};

use super::show::find;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, moment, optional, print_json, print_table, remark, size_text};
use crate::store_file;

/// Arguments of `onward queue collections`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only this queue
    #[arg(value_name = "QUEUE")]
    queue: Option<Name>,
    /// At most this many: 1 to 1000
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

/// Lists pending batches.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let which = CollectionSelection { queue: arguments.queue.clone(), limit: usize::from(arguments.limit) };
    let collections = store.collections(which).await?;
    if let Some(queue) = arguments.queue.filter(|_| collections.is_empty()) {
        find(&*store, &queue).await?;
    }
    if options.json {
        for collection in &collections {
            print_json(collection)?;
        }
    } else if collections.is_empty() {
        remark("nothing is being collected");
    } else {
        print_table(table(&collections))?;
    }
    Ok(ExitCode::Done)
}

fn table(collections: &[CollectionRecord]) -> Table {
    let mut table = Table::new([
        ("QUEUE", Align::Left),
        ("KIND", Align::Left),
        ("GROUP", Align::Left),
        ("MEMBERS", Align::Right),
        ("ENOUGH", Align::Right),
        ("PAYLOADS", Align::Right),
        ("BEGAN", Align::Left),
        ("RIPE AT", Align::Left),
    ]);
    for collection in collections {
        table.row([
            collection.queue.to_string(),
            collection.kind.to_string(),
            optional(collection.group.as_ref(), Name::to_string),
            collection.members.to_string(),
            collection.size.to_string(),
            size_text(collection.payload_bytes),
            moment(collection.began_at),
            moment(collection.ripe_at),
        ]);
    }
    table
}
