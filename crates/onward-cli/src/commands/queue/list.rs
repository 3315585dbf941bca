//! `onward queue list`

use onward_store::QueueRecord;
use onward_store::StoreReads;

use super::show::print_as_json;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, moment, optional, print_table, remark};
use crate::store_file;

/// Lists the queues.
pub(crate) async fn run(options: &GlobalOptions) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let queues = store.queues().await?;
    if options.json {
        print_as_json(&queues, store.clock().now(), &store.pauses().await?)?;
    } else if queues.is_empty() {
        remark("no queues; a queue is made by the first submit to it");
    } else {
        print_table(table(&queues))?;
    }
    Ok(ExitCode::Done)
}

/// Returns the queues as a table.
pub(crate) fn table(queues: &[QueueRecord]) -> Table {
    let numbers = ["BLOCKED", "SCHEDULED", "WAITING", "RUNNING", "COMPLETED", "FAILED", "DEAD", "CANCELLED", "EXPIRED"];
    let mut columns = vec![("QUEUE", Align::Left)];
    columns.extend(numbers.map(|number| (number, Align::Right)));
    columns.extend([("OLDEST WAITING", Align::Left), ("PAUSED", Align::Left)]);
    columns.extend([("WEIGHT", Align::Right), ("CONCURRENCY", Align::Right)]);
    let mut table = Table::new(columns);
    for queue in queues {
        let ended = queue.ended;
        let sizes = [queue.blocked, queue.scheduled, queue.waiting, queue.running];
        let ends = [ended.completed, ended.failed, ended.dead, ended.cancelled, ended.expired];
        let mut cells = vec![queue.name.to_string()];
        cells.extend(sizes.iter().chain(&ends).map(u64::to_string));
        cells.push(optional(queue.oldest_waiting, moment));
        cells.push(if queue.paused { "yes" } else { "no" }.to_owned());
        cells.extend([queue.weight.to_string(), optional(queue.concurrency, |limit| limit.to_string())]);
        table.row(cells);
    }
    table
}
