//! `onward queue batches`

use clap::Args;
use onward_store::{Name, PendingBatch, PendingBatchSelection, StoreReads};

use super::show::find;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, moment, optional, print_json, print_table, remark, size_text};
use crate::store_file;

/// Arguments of `onward queue batches`.
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
    let which = PendingBatchSelection { queue: arguments.queue.clone(), limit: usize::from(arguments.limit) };
    let batches = store.pending_batches(which).await?;
    if let Some(queue) = arguments.queue.filter(|_| batches.is_empty()) {
        find(&*store, &queue).await?;
    }
    if options.json {
        for batch in &batches {
            print_json(batch)?;
        }
    } else if batches.is_empty() {
        remark("no pending batches");
    } else {
        print_table(table(&batches))?;
    }
    Ok(ExitCode::Done)
}

fn table(batches: &[PendingBatch]) -> Table {
    let mut table = Table::new([
        ("QUEUE", Align::Left),
        ("KIND", Align::Left),
        ("GROUP", Align::Left),
        ("ITEMS", Align::Right),
        ("SIZE", Align::Right),
        ("PAYLOADS", Align::Right),
        ("STARTED", Align::Left),
        ("READY AT", Align::Left),
    ]);
    for batch in batches {
        table.row([
            batch.queue.to_string(),
            batch.kind.to_string(),
            optional(batch.group.as_ref(), Name::to_string),
            batch.items.to_string(),
            batch.size.to_string(),
            size_text(batch.payload_bytes),
            moment(batch.began_at),
            moment(batch.ready_at),
        ]);
    }
    table
}
