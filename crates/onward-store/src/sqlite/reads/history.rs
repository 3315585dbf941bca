//! The numbers of ended tasks by day.

use std::collections::BTreeMap;

use rusqlite::Connection;

use crate::api::error::Result;
use crate::api::history::QueueDay;
use crate::api::name::Name;
use crate::api::store::EndedCounts;
use crate::api::task::TaskState;
use crate::api::timestamp::Timestamp;
use crate::rules::history::{beginning, first_day};

/// The counts at the beginning of each day, by queue. The last key has the present counts.
type Counted = BTreeMap<i64, BTreeMap<Name, EndedCounts>>;

/// Returns the number of tasks that ended on each of the last days, by queue.
pub(in crate::sqlite) fn history(connection: &Connection, now: Timestamp, days: u32) -> Result<Vec<QueueDay>> {
    let latest: Option<i64> = connection.prepare_cached("SELECT max(day) FROM day")?.query_row([], |row| row.get(0))?;
    let counted = counted(connection, first_day(now, latest, days))?;
    let mut history = Vec::new();
    for ((day, before), (_, after)) in counted.iter().zip(counted.iter().skip(1)) {
        for (queue, after) in after {
            let ended = difference(before.get(queue).copied().unwrap_or_default(), *after);
            history.extend((ended.total() > 0).then(|| QueueDay { day: beginning(*day), queue: queue.clone(), ended }));
        }
    }
    Ok(history)
}

/// Reads the counts at the beginning of each day. Adds the present counts as if another day began
/// now.
fn counted(connection: &Connection, first: i64) -> Result<Counted> {
    let mut counted = Counted::new();
    // A day that began before any task had ended has no counts.
    let mut days = connection.prepare_cached("SELECT day FROM day WHERE day >= ?")?;
    let mut days = days.query([first])?;
    while let Some(row) = days.next()? {
        counted.insert(row.get(0)?, BTreeMap::new());
    }
    counted.insert(i64::MAX, BTreeMap::new());
    let mut statement = connection.prepare_cached(include_str!("../sql/reads/history.sql"))?;
    let mut rows = statement.query([first])?;
    while let Some(row) = rows.next()? {
        let day: Option<i64> = row.get(0)?;
        let queue = Name::new(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?)?;
        let ended = counted.entry(day.unwrap_or(i64::MAX)).or_default().entry(queue).or_default();
        if let Some(count) = TaskState::from_code(row.get(2)?).and_then(|state| ended.of(state)) {
            *count += row.get::<_, u64>(3)?;
        }
    }
    Ok(counted)
}

/// Returns the difference between two counts.
fn difference(before: EndedCounts, after: EndedCounts) -> EndedCounts {
    EndedCounts {
        completed: after.completed.saturating_sub(before.completed),
        failed: after.failed.saturating_sub(before.failed),
        dead: after.dead.saturating_sub(before.dead),
        cancelled: after.cancelled.saturating_sub(before.cancelled),
        expired: after.expired.saturating_sub(before.expired),
    }
}
