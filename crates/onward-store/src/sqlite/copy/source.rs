//! Reads a store in pieces.

use std::path::Path;
use std::vec::IntoIter;

use rusqlite::{Connection, OptionalExtension};

use super::{documents, orchestrations, output, settings, tasks};
use crate::api::error::Result;
use crate::api::store::Durability;
use crate::copy::{PIECE, Source, SourceFacts};
use crate::postgres::{ChangeSet, Counters, KeyRow};
use crate::sqlite::columns::durations::microseconds;
use crate::sqlite::commit::cache::scope_number;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::Names;
use crate::sqlite::limits::deferred_counters::{ClockReading, CounterSaving};
use crate::sqlite::limits::limit_usage::Limits;
use crate::sqlite::limits::queue_settings::Queues;
use crate::sqlite::store::connect::{connect_first, prepare};
use crate::sqlite::store::open::SqliteOptions;
use crate::sqlite::verbs::tasks::removal::ended_tasks;

/// Orders the tasks that ended in one call by their ends. Only the log has that order.
fn order_within_calls(connection: &Connection) -> Result<()> {
    let mut calls =
        connection.prepare("SELECT call, first, changes FROM temp.end_of_several JOIN log ON log.id = call")?;
    let mut set = connection.prepare(
        "UPDATE temp.end_order SET number = ?1 WHERE task = (SELECT id FROM history WHERE id = ?2 AND ended_in = ?3)",
    )?;
    let mut rows = calls.query([])?;
    while let Some(row) = rows.next()? {
        let (call, mut number): (i64, i64) = (row.get(0)?, row.get(1)?);
        let changes: Vec<u8> = row.get(2)?;
        for task in ended_tasks(&changes)? {
            // The task may be removed by now, or have ended again.
            number += i64::try_from(set.execute((number, task.0, call))?).unwrap_or_default();
        }
    }
    Ok(())
}

/// Writes the deferred counters of groups, which a process that was alone may have left out of the
/// tables.
fn write_out_counts(connection: &Database<'_>, now: ClockReading) -> Result<()> {
    let names = Names::load(connection, None)?;
    let configuration = Queues::load(connection)?.configuration();
    let mut limits = Limits::load(connection, configuration, None, |scope| scope_number(&names, scope))?;
    limits.recompute_counters(connection, &names, now)?;
    limits.save_groups(connection, (0, now), CounterSaving::Now)
}

/// The part to read next.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// Settings, counts and names, in one piece.
    Settings,
    /// The unique keys of live tasks.
    ActiveKeys { after: i64 },
    /// The unique keys that outlive their tasks.
    KeptKeys { after: i64 },
    /// The dependencies.
    DependentOf { after: (i64, i64) },
    /// The items of batches.
    BatchItems { after: i64 },
    /// The live tasks.
    Live { after: i64 },
    /// The ended tasks.
    Ended { after: i64 },
    /// The histories of orchestrations.
    Turns { after: (i64, i64) },
    /// The output of tasks.
    Output { after: (i64, i16, i64) },
    /// The unread messages.
    Messages { after: (i64, i64) },
    /// The documents.
    Documents { after: i64 },
    /// The log.
    Log { after: i64 },
    /// The end.
    Nothing,
}

/// A source that reads a file, to which no process writes during that time.
#[derive(Debug)]
pub(crate) struct SqliteSource {
    /// The connection that reads.
    connection: Connection,
    /// The clock of the store.
    clock: std::sync::Arc<dyn crate::clock::Clock>,
    /// The part to read next.
    part: Part,
}

impl SqliteSource {
    /// Opens a source. It blocks all writers of the file from now on.
    pub(crate) fn open(path: &Path, options: &SqliteOptions) -> Result<(Self, SourceFacts)> {
        let connection = connect_first(path, None)?;
        prepare(&connection, Durability::Full)?;
        // On disk, because the order of all ends need not fit into memory.
        connection.pragma_update(None, "temp_store", "FILE")?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        connection.execute_batch(
            "CREATE TEMP TABLE end_order (task INTEGER PRIMARY KEY, number INTEGER NOT NULL) STRICT; \
             INSERT INTO temp.end_order SELECT id, row_number() OVER (ORDER BY ended_in, id) FROM history; \
             CREATE TEMP TABLE end_of_several (call INTEGER PRIMARY KEY, first INTEGER NOT NULL) STRICT; \
             INSERT INTO temp.end_of_several SELECT ended_in, min(number) FROM history JOIN temp.end_order ON task = id \
               GROUP BY ended_in HAVING count(*) > 1",
        )?;
        order_within_calls(&connection)?;
        let clock = options.clock_of();
        let now = ClockReading { wall: clock.now().as_microseconds(), steady: microseconds(clock.steady()) };
        write_out_counts(&Database::from(&connection), now)?;
        let begun =
            SourceFacts { counters: counters(&connection)?, tasks: count(&connection)?, steady: clock.steady() };
        Ok((Self { connection, clock, part: Part::Settings }, begun))
    }

    /// Reads the next pairs of numbers.
    fn pairs<T>(&self, sql: &str, after: (i64, i64), row: impl Fn(i64, i64) -> T) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement
            .query_map([after.0, after.1, PIECE.cast_signed() as i64], |read| Ok(row(read.get(0)?, read.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Reads the next unique keys, and returns the position of the last one.
    fn keys(&self, sql: &str, after: i64) -> Result<(Vec<KeyRow>, Option<i64>)> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([after, PIECE.cast_signed() as i64], |row| {
            let key: String = row.get(2)?;
            let (kind, task, until) = (row.get(1)?, row.get(3)?, row.get(4)?);
            Ok((row.get::<_, i64>(0)?, KeyRow { kind, key: key.into_bytes(), task, until }))
        })?;
        let rows: Vec<(i64, KeyRow)> = rows.collect::<rusqlite::Result<_>>()?;
        let last = rows.last().map(|(at, _)| *at);
        Ok((rows.into_iter().map(|(_, key)| key).collect(), last))
    }

    /// Reads a piece of the current part, and returns it with the position after it.
    fn read(&self) -> Result<(ChangeSet, Part)> {
        let mut piece = ChangeSet::default();
        let next = match self.part {
            Part::Settings => {
                settings::read(&self.connection, self.clock.now(), &mut piece)?;
                Part::ActiveKeys { after: 0 }
            }
            Part::ActiveKeys { after } => {
                let (keys, last) = self.keys(ACTIVE_KEYS, after)?;
                piece.keys = keys;
                last.map_or(Part::KeptKeys { after: 0 }, |after| Part::ActiveKeys { after })
            }
            Part::KeptKeys { after } => {
                let (keys, last) = self.keys(KEPT_KEYS, after)?;
                piece.keys = keys;
                last.map_or(Part::DependentOf { after: (0, 0) }, |after| Part::KeptKeys { after })
            }
            Part::DependentOf { after } => {
                piece.waits = self.pairs(WAITS, after, |task, dependent| (task, dependent))?;
                piece.waits.last().map_or(Part::BatchItems { after: 0 }, |after| Part::DependentOf { after: *after })
            }
            Part::BatchItems { after } => {
                piece.batch_items = self.pairs(BATCH_ITEMS, (after, 0), |item, batch| (item, batch))?;
                piece
                    .batch_items
                    .last()
                    .map_or(Part::Live { after: 0 }, |(after, _)| Part::BatchItems { after: *after })
            }
            Part::Live { after } => {
                piece.live = rows(tasks::live(&self.connection, after)?)?;
                piece.tags = tasks::tags(&self.connection, "task", after, &piece.live)?;
                piece.live.last().map_or(Part::Ended { after: 0 }, |last| Part::Live { after: last.id })
            }
            Part::Ended { after } => {
                piece.ended = rows(tasks::ended(&self.connection, after)?)?;
                piece.tags = tasks::tags(&self.connection, "history", after, &piece.ended)?;
                piece.ended.last().map_or(Part::Turns { after: (0, 0) }, |last| Part::Ended { after: last.id })
            }
            Part::Turns { after } => {
                piece.turns = orchestrations::turns(&self.connection, after)?;
                let last = piece.turns.last().map(|last| (last.task, last.first));
                last.map_or(Part::Output { after: (0, 0, -1) }, |after| Part::Turns { after })
            }
            Part::Output { after } => {
                piece.output = output::pieces(&self.connection, after)?;
                let last = piece.output.last().map(crate::postgres::OutputRow::key);
                last.map_or(Part::Messages { after: (0, 0) }, |after| Part::Output { after })
            }
            Part::Messages { after } => {
                piece.messages = orchestrations::messages(&self.connection, after)?;
                let last = piece.messages.last().map(|last| (last.task, last.number));
                last.map_or(Part::Documents { after: 0 }, |after| Part::Messages { after })
            }
            Part::Documents { after } => {
                let (documents, last) = documents::read(&self.connection, after)?;
                piece.documents = documents;
                last.map_or(Part::Log { after: 0 }, |after| Part::Documents { after })
            }
            Part::Log { after } => {
                piece.log = tasks::log(&self.connection, after)?;
                piece.log.last().map_or(Part::Nothing, |(entry, ..)| Part::Log { after: *entry })
            }
            Part::Nothing => Part::Nothing,
        };
        Ok((piece, next))
    }
}

/// Encodes tasks as rows.
fn rows(tasks: IntoIter<crate::model::Task>) -> Result<Vec<crate::postgres::TaskRow>> {
    tasks.map(|task| crate::postgres::TaskRow::of(&task, true)).collect()
}

impl Source for SqliteSource {
    async fn next(&mut self) -> Result<Option<ChangeSet>> {
        if matches!(self.part, Part::Nothing) {
            return Ok(None);
        }
        let (piece, next) = self.read()?;
        self.part = next;
        Ok(Some(piece))
    }

    async fn end(self) -> Result<()> {
        Ok(self.connection.execute_batch("ROLLBACK")?)
    }
}

/// The query for keys of live tasks. A task with 2 in `cancel_requested` has lost its key to
/// another task.
const ACTIVE_KEYS: &str = "SELECT t.id, k.name, t.key, t.id, NULL FROM task t JOIN sub_queue l ON l.id = t.sub_queue JOIN kind k ON k.id = l.kind \
     WHERE t.id > ?1 AND t.key IS NOT NULL AND t.cancel_requested < 2 ORDER BY t.id LIMIT ?2";

/// The query for unique keys that outlive their tasks.
const KEPT_KEYS: &str = "SELECT e.task, k.name, e.key, e.task, e.until FROM retained_key e JOIN kind k ON k.id = e.kind WHERE e.task > ?1 \
     ORDER BY e.task LIMIT ?2";

/// The query for dependencies.
const WAITS: &str =
    "SELECT task, dependent FROM dependency WHERE (task, dependent) > (?1, ?2) ORDER BY task, dependent LIMIT ?3";

/// The query for items of batches.
const BATCH_ITEMS: &str = "SELECT task, batch FROM batch_item WHERE task > ?1 AND ?2 = 0 ORDER BY task LIMIT ?3";

/// Counts all tasks, for the progress of the copy.
fn count(connection: &Connection) -> Result<u64> {
    let all = "SELECT (SELECT count(*) FROM task) + (SELECT count(*) FROM history)";
    Ok(connection.query_row(all, [], |row| row.get(0))?)
}

/// Reads the numbers that the store assigned last.
fn counters(connection: &Connection) -> Result<Counters> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let last_log = "SELECT id, next_task FROM log ORDER BY id DESC LIMIT 1";
    let last_log = connection.query_row(last_log, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (last_entry, next_task): (i64, i64) = last_log.unwrap_or((0, 1));
    let last_session = "SELECT seq FROM sqlite_sequence WHERE name = 'session'";
    let last_session = connection.query_row(last_session, [], |row| row.get(0)).optional()?;
    Ok(Counters {
        last_task: number("SELECT coalesce(max(id), 0) FROM task")?.max(next_task - 1),
        last_session: last_session.unwrap_or(0),
        ends: number("SELECT count(*) FROM history")?,
        last_entry,
    })
}
