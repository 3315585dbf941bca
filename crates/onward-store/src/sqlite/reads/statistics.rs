//! Statistics of ended tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::Connection;

use crate::api::error::{Error, Result};
use crate::api::io::IoStatistics;
use crate::api::name::Name;
use crate::api::store::{EndedCounts, KindStatistics};
use crate::api::task::TaskState;

/// Returns the statistics of each kind, as sums over its queues.
pub(in crate::sqlite) fn statistics(connection: &Connection) -> Result<Vec<KindStatistics>> {
    let mut statement = connection.prepare_cached(include_str!("../sql/reads/statistics.sql"))?;
    let mut rows = statement.query([])?;
    let mut kinds: BTreeMap<Name, KindStatistics> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let name = Name::new(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?;
        let kind = kinds.entry(name.clone()).or_insert_with(|| KindStatistics {
            kind: name,
            ended: EndedCounts::default(),
            attempts: 0,
            wait: Duration::ZERO,
            run: Duration::ZERO,
            run_maximum: Duration::ZERO,
            io: IoStatistics::default(),
        });
        if let Some(count) = TaskState::from_code(row.get(1)?).and_then(|state| kind.ended.of(state)) {
            *count += row.get::<_, u64>(2)?;
        }
        kind.attempts += row.get::<_, u64>(3)?;
        kind.wait += Duration::from_micros(row.get(4)?);
        kind.run += Duration::from_micros(row.get(5)?);
        kind.run_maximum = kind.run_maximum.max(Duration::from_micros(row.get(6)?));
    }
    add_io(connection, &mut kinds)?;
    Ok(kinds.into_values().collect())
}

/// Adds the I/O of each kind.
fn add_io(connection: &Connection, kinds: &mut BTreeMap<Name, KindStatistics>) -> Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT k.name, i.totals FROM kind_io i JOIN kind k ON k.id = i.kind")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let name = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
        if let Some(kind) = kinds.get_mut(name) {
            kind.io = read_totals(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?)?;
        }
    }
    Ok(())
}

/// Parses a row of `kind_io`.
pub(in crate::sqlite) fn read_totals(text: &str) -> Result<IoStatistics> {
    let damaged = |error| Error::corrupt("what tasks have moved cannot be read; restore a backup").caused_by(error);
    serde_json::from_str(text).map_err(damaged)
}
