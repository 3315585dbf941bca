//! Queues and their sizes.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;
use crate::name::Name;
use crate::sqlite::cache::Cache;
use crate::sqlite::names::SERIES_LINES;
use crate::store::{EndedCounts, QueueRecord};
use crate::task::TaskState;
use crate::timestamp::Timestamp;

/// One of the counts of a queue.
type Field = fn(&mut QueueRecord) -> &mut u64;

/// What is gathered for each queue.
struct Sizes {
    record: QueueRecord,
    oldest: Option<i64>,
}

impl Sizes {
    fn waits(&mut self, task: i64) {
        self.oldest = Some(self.oldest.map_or(task, |oldest| oldest.min(task)));
    }
}

pub(in crate::sqlite) fn queues(connection: &Connection, cache: &mut Cache) -> Result<Vec<QueueRecord>> {
    let mut queues = names(connection, cache)?;
    add_tables(connection, &mut queues)?;
    add_memory(cache, &mut queues);
    add_oldest(connection, &mut queues)?;
    add_ended(connection, &mut queues)?;
    let mut records = Vec::with_capacity(queues.len());
    for (_, Sizes { mut record, oldest }) in queues {
        if let Some(oldest) = oldest {
            let run_at: Option<i64> = connection
                .prepare_cached("SELECT run_at FROM task WHERE id = ?")?
                .query_row([oldest], |row| row.get(0))
                .optional()?;
            record.oldest_waiting = run_at.map(Timestamp::from_microseconds);
        }
        records.push(record);
    }
    records.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(records)
}

fn names(connection: &Connection, cache: &Cache) -> Result<BTreeMap<i64, Sizes>> {
    let mut statement = connection.prepare_cached("SELECT id, name FROM queue WHERE deleted = 0")?;
    let mut rows = statement.query([])?;
    let mut queues = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let name = Name::new(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?)?;
        let number = row.get(0)?;
        let paused = cache.pauses.queue_is_paused(&name);
        let settings = cache.queues.settings(number);
        let record = QueueRecord {
            name,
            blocked: 0,
            scheduled: 0,
            waiting: 0,
            running: 0,
            ended: EndedCounts::default(),
            oldest_waiting: None,
            paused,
            weight: settings.weight,
            concurrency: settings.concurrency,
            affinity_wait: settings.affinity_wait,
        };
        queues.insert(number, Sizes { record, oldest: None });
    }
    Ok(queues)
}

/// Counts each state in the tables: an index entry each for what waits, and what runs.
fn add_tables(connection: &Connection, queues: &mut BTreeMap<i64, Sizes>) -> Result<()> {
    let counts: [(&str, Field); 4] = [
        ("SELECT lane, count(*) AS tasks FROM ready GROUP BY lane", |record| &mut record.waiting),
        ("SELECT lane, count(*) AS tasks FROM scheduled GROUP BY lane", |record| &mut record.scheduled),
        (
            "SELECT t.lane, count(*) AS tasks FROM lease l CROSS JOIN task t ON t.id BETWEEN l.first AND l.last GROUP BY t.lane",
            |record| &mut record.running,
        ),
        (
            "SELECT t.lane, count(*) AS tasks FROM (SELECT dependent FROM dependency UNION SELECT task FROM awaited \
             UNION SELECT task FROM member UNION SELECT m.task FROM bundle b JOIN member_of m ON m.bundle = b.task) AS d \
             JOIN task t ON t.id = d.dependent GROUP BY t.lane",
            |record| &mut record.blocked,
        ),
    ];
    let lanes_only = SERIES_LINES - 1;
    for (lanes, field) in counts {
        let sql = format!("SELECT n.queue, c.tasks FROM ({lanes}) AS c JOIN lane n ON n.id = c.lane & {lanes_only}");
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let Some(sizes) = queues.get_mut(&row.get(0)?) {
                *field(&mut sizes.record) += row.get::<_, u64>(1)?;
            }
        }
    }
    Ok(())
}

/// Finds the oldest task that waits in the tables for each queue.
fn add_oldest(connection: &Connection, queues: &mut BTreeMap<i64, Sizes>) -> Result<()> {
    let mut statement = connection.prepare_cached(include_str!("../sql/oldest_ready.sql"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(sizes) = queues.get_mut(&row.get(0)?) {
            sizes.waits(row.get(1)?);
        }
    }
    Ok(())
}

fn add_memory(cache: &Cache, queues: &mut BTreeMap<i64, Sizes>) {
    for (lane, places) in cache.index.ready_in_memory() {
        if let Some(sizes) = cache.names.lane(lane).and_then(|lane| queues.get_mut(&lane.queue)) {
            sizes.record.waiting += places.len() as u64;
            places.iter().for_each(|place| sizes.waits(place.task.0));
        }
    }
    for lane in cache.index.scheduled_in_memory() {
        if let Some(sizes) = cache.names.lane(lane).and_then(|lane| queues.get_mut(&lane.queue)) {
            sizes.record.scheduled += 1;
        }
    }
}

fn add_ended(connection: &Connection, queues: &mut BTreeMap<i64, Sizes>) -> Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT n.queue, s.state, s.kept FROM statistics s JOIN lane n ON n.id = s.lane")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let state = TaskState::from_code(row.get(1)?);
        let count = queues.get_mut(&row.get(0)?).and_then(|sizes| state.and_then(|state| sizes.record.ended.of(state)));
        if let Some(count) = count {
            *count += row.get::<_, u64>(2)?;
        }
    }
    Ok(())
}
