//! Statistics of ended tasks, by kind and by day.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::model_reads::ask;
use crate::api::error::Result;
use crate::api::history::QueueDay;
use crate::api::io::{Io, IoKind, IoStatistics};
use crate::api::name::Name;
use crate::api::store::{EndedCounts, KindStatistics};
use crate::postgres::connect::error::classified;
use crate::postgres::shared::{Shared, wall};
use crate::rules::history::{beginning, first_day};

/// The query for the statistics of all kinds.
pub(in crate::postgres) const STATISTICS: &str = "SELECT kind, completed, failed, dead, cancelled, expired, attempts, wait, run, \
     run_maximum, io_tasks, io::text[] FROM {s}.statistics ORDER BY kind";

/// Returns the statistics of all kinds.
pub(in crate::postgres) async fn statistics(shared: &Shared) -> Result<Vec<KindStatistics>> {
    let client = shared.pool.get().await?;
    let rows = ask(&client, shared, STATISTICS, &[]).await?;
    client.give_back();
    rows.iter().map(kind).collect()
}

/// Decodes a row of [`STATISTICS`].
pub(in crate::postgres) fn kind(row: &Row) -> Result<KindStatistics> {
    let time = |at: usize| Duration::from_micros(count(row, at));
    let io: Vec<String> = row.try_get(11).map_err(classified)?;
    let numbers: Vec<u64> = io.iter().map(|number| number.parse().unwrap_or(u64::MAX)).collect();
    let sums = |first: usize| {
        let mut io = Io::default();
        for (at, sort) in IoKind::ALL.into_iter().enumerate() {
            io.set(sort, numbers.get(first + at).copied().unwrap_or_default());
        }
        io
    };
    Ok(KindStatistics {
        kind: Name::new(row.get::<_, &str>(0))?,
        ended: ended(row, 1),
        attempts: count(row, 6),
        wait: time(7),
        run: time(8),
        run_maximum: time(9),
        io: IoStatistics { tasks: count(row, 10), expected: sums(0), recorded: sums(IoKind::ALL.len()) },
    })
}

/// Decodes a count.
fn count(row: &Row, at: usize) -> u64 {
    row.get::<_, i64>(at).cast_unsigned()
}

/// Decodes the counts of ended tasks, which begin at a column.
pub(in crate::postgres) fn ended(row: &Row, first: usize) -> EndedCounts {
    let count = |at: usize| count(row, first + at);
    EndedCounts { completed: count(0), failed: count(1), dead: count(2), cancelled: count(3), expired: count(4) }
}

/// Returns the daily counts of the last days.
pub(in crate::postgres) async fn history(shared: &Shared, days: u32) -> Result<Vec<QueueDay>> {
    let client = shared.pool.get().await?;
    let latest = "SELECT max(day) FROM {s}.day";
    let rows = client.query_typed(&shared.sql.text(latest), &[]).await.map_err(classified)?;
    let latest: Option<i64> = rows.first().and_then(|row| row.get(0));
    let first = first_day(wall(shared), latest, days);
    let statement = "SELECT day, queue, completed, failed, dead, cancelled, expired FROM {s}.day WHERE day >= $1 \
                     ORDER BY day, queue";
    let rows = ask(&client, shared, statement, &[(&first, Type::INT8)]).await?;
    client.give_back();
    let day = |row: &Row| {
        let queue = Name::new(row.get::<_, &str>(1))?;
        Ok(QueueDay { day: beginning(row.get(0)), queue, ended: ended(row, 2) })
    };
    rows.iter().map(day).collect()
}
