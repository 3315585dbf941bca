//! What ended tasks were like.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::Connection;

use crate::error::Result;
use crate::name::Name;
use crate::store::{EndedCounts, KindStatistics};
use crate::task::TaskState;

pub(in crate::sqlite) fn statistics(connection: &Connection) -> Result<Vec<KindStatistics>> {
    let mut statement = connection.prepare_cached(include_str!("../sql/statistics.sql"))?;
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
        });
        if let Some(count) = TaskState::from_code(row.get(1)?).and_then(|state| kind.ended.of(state)) {
            *count += row.get::<_, u64>(2)?;
        }
        kind.attempts += row.get::<_, u64>(3)?;
        kind.wait += Duration::from_micros(row.get(4)?);
        kind.run += Duration::from_micros(row.get(5)?);
        kind.run_maximum = kind.run_maximum.max(Duration::from_micros(row.get(6)?));
    }
    Ok(kinds.into_values().collect())
}
