//! `onward queue history`

use clap::Args;
use onward_store::{Name, QueueDay, StoreReads, bounds};
use serde_json::{Value, json};

use super::show::find;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, print_json, print_table, remark};
use crate::store_file;

/// Arguments of `onward queue history`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only this queue
    #[arg(value_name = "QUEUE")]
    queue: Option<Name>,
    /// The last days, today included: 1 to 90
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=i64::from(bounds::HISTORY_DAYS)))]
    days: u32,
}

/// Shows how tasks ended, by day.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let mut days = store.history(arguments.days).await?;
    days.retain(|day| arguments.queue.as_ref().is_none_or(|queue| day.queue == *queue));
    if let Some(queue) = arguments.queue.filter(|_| days.is_empty()) {
        find(&*store, &queue).await?;
    }
    if options.json {
        for day in &days {
            print_json(&json_of(day))?;
        }
    } else if days.is_empty() {
        remark("no task ended in that time");
    } else {
        print_table(table(&days))?;
    }
    Ok(ExitCode::Done)
}

fn json_of(day: &QueueDay) -> Value {
    json!({ "day": date(day), "queue": day.queue, "ended": day.ended })
}

/// Returns the date of a day without its time, which is midnight.
fn date(day: &QueueDay) -> String {
    let moment = day.day.to_string();
    moment.split('T').next().unwrap_or_default().to_owned()
}

fn table(days: &[QueueDay]) -> Table {
    let mut columns = vec![("DAY", Align::Left), ("QUEUE", Align::Left)];
    columns.extend(["COMPLETED", "FAILED", "DEAD", "CANCELLED", "EXPIRED"].map(|number| (number, Align::Right)));
    let mut table = Table::new(columns);
    for day in days {
        let ended = day.ended;
        let mut cells = vec![date(day), day.queue.to_string()];
        let ends = [ended.completed, ended.failed, ended.dead, ended.cancelled, ended.expired];
        cells.extend(ends.iter().map(u64::to_string));
        table.row(cells);
    }
    table
}
