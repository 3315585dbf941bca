//! Copying a store to or from another backend: reading in one snapshot, writing in one transaction.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::api::error::{Error, Result};
use crate::clock::Clock;
use crate::copy::{DOCUMENT_PIECE, PIECE, Source, SourceFacts, Target};
use crate::postgres::commit::inbox;
use crate::postgres::commit::write_rows::save_rows;
use crate::postgres::connect::connection::{OwnedConnection, connect};
use crate::postgres::connect::error::classified;
use crate::postgres::connect::options::PostgresOptions;
use crate::postgres::connect::server_clock::ServerClock;
use crate::postgres::load::document_row::{DOCUMENT, document};
use crate::postgres::load::row::SMALL_STATE;
use crate::postgres::load::row::item;
use crate::postgres::load::row::task_alone;
use crate::postgres::migrations::migrate;
use crate::postgres::reads::{self, STATISTICS};
use crate::postgres::sql::{BEGIN, BEGIN_TO_READ, COLUMNS, Sql};
use crate::postgres::working_set::change_set::{
    ChangeSet, DayCounts, DocumentRow, KeyRow, MessageRow, OutputRow, TurnRow,
};
use crate::postgres::working_set::counters::Counters;
use crate::postgres::working_set::task_row::TaskRow;

/// The next section of a store to read. Sections come in this order, each in the order of its key.
#[derive(Debug, Clone)]
enum Section {
    Settings,
    Keys { after: (String, Vec<u8>) },
    Waits { after: (i64, i64) },
    BatchItems { after: i64 },
    Live { after: i64 },
    Ended { after: i64 },
    Turns { after: (i64, i64) },
    Output { after: (i64, i16, i64) },
    Messages { after: (i64, i64) },
    Documents { after: (String, Vec<u8>) },
    Log { after: i64 },
    Nothing,
}

/// A source that reads a store from one snapshot.
#[derive(Debug)]
pub(crate) struct PostgresSource {
    client: OwnedConnection,
    sql: Sql,
    section: Section,
    /// The store's numbers before the snapshot. If they differ at the end, the copy is not
    /// complete.
    stamp: Stamp,
}

/// The counters and the number of writing transactions, which differ after every write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    counters: Counters,
    write: i64,
}

/// The parameters of a query.
type Values<'a> = [(&'a (dyn ToSql + Sync), Type)];

impl PostgresSource {
    /// Begins to read a store.
    pub(crate) async fn open(url: &str, options: &PostgresOptions) -> Result<(Self, SourceFacts)> {
        let (address, options) = options.clone().read(url)?;
        let client = connect(&address).await?;
        let sql = Sql { schema: options.schema.clone() };
        // The numbers are read under the lock, so that everything that they count is committed, and
        // visible in the snapshot that follows.
        client.batch_execute(&sql.and_lock(BEGIN)).await.map_err(classified)?;
        let (stamp, now) = stamp(&client, &sql).await?;
        let begin = format!("COMMIT; {BEGIN_TO_READ}; SET LOCAL idle_in_transaction_session_timeout = 0");
        client.batch_execute(&begin).await.map_err(classified)?;
        let all = "SELECT (SELECT count(*) FROM {s}.task) + (SELECT count(*) FROM {s}.history)";
        let rows = client.query_typed(&sql.text(all), &[]).await.map_err(classified)?;
        let tasks: i64 = rows.first().map_or(0, |row| row.get(0));
        let steady = steady(&options, now);
        let begun = SourceFacts { counters: stamp.counters, tasks: tasks.cast_unsigned(), steady };
        Ok((Self { client, sql, section: Section::Settings, stamp }, begun))
    }

    /// Runs a query in the snapshot.
    async fn query(&self, text: &str, values: &Values<'_>) -> Result<Vec<Row>> {
        self.client.query_typed(&self.sql.text(text), values).await.map_err(classified)
    }

    /// Reads the next tasks of a table.
    async fn tasks(&self, table: &str, after: i64) -> Result<Vec<TaskRow>> {
        let text = format!("SELECT {COLUMNS} FROM {{s}}.{table} t WHERE t.id > $1 ORDER BY t.id LIMIT {PIECE}");
        self.query(&text, &[(&after, Type::INT8)]).await?.iter().map(task_alone).collect()
    }

    /// Reads the tags of tasks.
    async fn tags(&self, tasks: &[TaskRow]) -> Result<Vec<(i64, Vec<u8>)>> {
        let ids: Vec<i64> = tasks.iter().map(|task| task.id).collect();
        let text = "SELECT task, tag FROM {s}.task_tag WHERE task = ANY($1)";
        let rows = self.query(text, &[(&ids, Type::INT8_ARRAY)]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Reads everything that is small enough for one piece.
    async fn settings(&self, piece: &mut ChangeSet) -> Result<()> {
        let items = self.query(&format!("{SMALL_STATE} ORDER BY sort, name"), &[]).await?;
        piece.items = items.iter().map(item).collect();
        let statistics = self.query(STATISTICS, &[]).await?;
        piece.statistics = statistics.iter().map(reads::kind).collect::<Result<_>>()?;
        let days = "SELECT day, queue, completed, failed, dead, cancelled, expired FROM {s}.day ORDER BY day, queue";
        let day = |row: &Row| DayCounts { day: row.get(0), queue: row.get(1), ended: reads::ended(row, 2) };
        piece.days = self.query(days, &[]).await?.iter().map(day).collect();
        Ok(())
    }

    /// Reads the next unique keys.
    async fn keys(&self, (kind, key): &(String, Vec<u8>)) -> Result<Vec<KeyRow>> {
        let text = format!(
            "SELECT kind, key, task, until FROM {{s}}.unique_key WHERE (kind, key) > ($1, $2) ORDER BY kind, key LIMIT {PIECE}"
        );
        let rows = self.query(&text, &[(kind, Type::TEXT), (key, Type::BYTEA)]).await?;
        let key = |row: &Row| KeyRow { kind: row.get(0), key: row.get(1), task: row.get(2), until: row.get(3) };
        Ok(rows.iter().map(key).collect())
    }

    /// Reads the next pairs of numbers.
    async fn pairs(&self, text: &str, after: (i64, i64)) -> Result<Vec<(i64, i64)>> {
        let text = format!("{text} LIMIT {PIECE}");
        let rows = self.query(&text, &[(&after.0, Type::INT8), (&after.1, Type::INT8)]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Reads the next events of histories.
    async fn turns(&self, (task, first): (i64, i64)) -> Result<Vec<TurnRow>> {
        let text = format!(
            "SELECT task, first, events, chunk FROM {{s}}.turn WHERE (task, first) > ($1, $2) ORDER BY task, first LIMIT {PIECE}"
        );
        let rows = self.query(&text, &[(&task, Type::INT8), (&first, Type::INT8)]).await?;
        let turn = |row: &Row| TurnRow {
            task: row.get(0),
            first: row.get(1),
            events: row.get(2),
            chunk: row.get::<_, Vec<u8>>(3).into(),
        };
        Ok(rows.iter().map(turn).collect())
    }

    /// Reads the next pieces of output, in the order of task, stream and position.
    async fn output(&self, (task, stream, at): (i64, i16, i64)) -> Result<Vec<OutputRow>> {
        let text = format!(
            "SELECT task, stream, at, length, bytes FROM {{s}}.output_piece WHERE (task, stream, at) > ($1, $2, $3) \
             ORDER BY task, stream, at LIMIT {PIECE}"
        );
        let rows = self.query(&text, &[(&task, Type::INT8), (&stream, Type::INT2), (&at, Type::INT8)]).await?;
        rows.iter()
            .map(|row| {
                let length: i32 = row.get(3);
                let bytes = row.get::<_, Vec<u8>>(4).into();
                OutputRow::read((row.get(0), row.get(1), row.get(2)), length.cast_unsigned(), bytes)
            })
            .collect()
    }

    /// Reads the next messages.
    async fn messages(&self, (task, number): (i64, i64)) -> Result<Vec<MessageRow>> {
        let text = format!(
            "SELECT task, number, body FROM {{s}}.message WHERE (task, number) > ($1, $2) ORDER BY task, number LIMIT {PIECE}"
        );
        let rows = self.query(&text, &[(&task, Type::INT8), (&number, Type::INT8)]).await?;
        let message = |row: &Row| MessageRow { task: row.get(0), number: row.get(1), body: row.get(2) };
        Ok(rows.iter().map(message).collect())
    }

    /// Reads the next documents, in the order of collection and key.
    async fn documents(&self, (collection, key): &(String, Vec<u8>)) -> Result<Vec<DocumentRow>> {
        let text = format!(
            "SELECT {DOCUMENT}, d.content FROM {{s}}.document d WHERE (d.collection, d.key) > ($1, $2) \
             ORDER BY d.collection, d.key LIMIT {DOCUMENT_PIECE}"
        );
        let rows = self.query(&text, &[(collection, Type::TEXT), (key, Type::BYTEA)]).await?;
        rows.iter().map(document).collect()
    }

    /// Reads the next entries of the log.
    async fn log(&self, after: i64) -> Result<Vec<(i64, i64, String)>> {
        let text =
            format!("SELECT entry, next_task, changes FROM {{s}}.log WHERE entry > $1 ORDER BY entry LIMIT {PIECE}");
        let rows = self.query(&text, &[(&after, Type::INT8)]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
    }

    /// Reads the next piece of the current section, and returns it with the position after it.
    async fn read(&self) -> Result<(ChangeSet, Section)> {
        let mut piece = ChangeSet::default();
        let next = match &self.section {
            Section::Settings => {
                self.settings(&mut piece).await?;
                Section::Keys { after: Default::default() }
            }
            Section::Keys { after } => {
                piece.keys = self.keys(after).await?;
                let last = piece.keys.last().map(|last| (last.kind.clone(), last.key.clone()));
                last.map_or(Section::Waits { after: (0, 0) }, |after| Section::Keys { after })
            }
            Section::Waits { after } => {
                piece.waits = self.pairs(WAITS, *after).await?;
                piece.waits.last().map_or(Section::BatchItems { after: 0 }, |after| Section::Waits { after: *after })
            }
            Section::BatchItems { after } => {
                piece.batch_items = self.pairs(BATCH_ITEMS, (*after, 0)).await?;
                piece
                    .batch_items
                    .last()
                    .map_or(Section::Live { after: 0 }, |(after, _)| Section::BatchItems { after: *after })
            }
            Section::Live { after } => {
                piece.live = self.tasks("task", *after).await?;
                piece.tags = self.tags(&piece.live).await?;
                piece.live.last().map_or(Section::Ended { after: 0 }, |last| Section::Live { after: last.id })
            }
            Section::Ended { after } => {
                piece.ended = self.tasks("history", *after).await?;
                piece.tags = self.tags(&piece.ended).await?;
                piece.ended.last().map_or(Section::Turns { after: (0, 0) }, |last| Section::Ended { after: last.id })
            }
            Section::Turns { after } => {
                piece.turns = self.turns(*after).await?;
                let last = piece.turns.last().map(|last| (last.task, last.first));
                last.map_or(Section::Output { after: (0, 0, -1) }, |after| Section::Turns { after })
            }
            Section::Output { after } => {
                piece.output = self.output(*after).await?;
                let last = piece.output.last().map(OutputRow::key);
                last.map_or(Section::Messages { after: (0, 0) }, |after| Section::Output { after })
            }
            Section::Messages { after } => {
                piece.messages = self.messages(*after).await?;
                let last = piece.messages.last().map(|last| (last.task, last.number));
                last.map_or(Section::Documents { after: Default::default() }, |after| Section::Messages { after })
            }
            Section::Documents { after } => {
                piece.documents = self.documents(after).await?;
                let last = piece.documents.last();
                let last = last.map(|last| (last.collection.to_string(), last.key.clone().into_bytes()));
                last.map_or(Section::Log { after: 0 }, |after| Section::Documents { after })
            }
            Section::Log { after } => {
                piece.log = self.log(*after).await?;
                piece.log.last().map_or(Section::Nothing, |(entry, ..)| Section::Log { after: *entry })
            }
            Section::Nothing => Section::Nothing,
        };
        Ok((piece, next))
    }
}

/// The query for dependencies.
const WAITS: &str =
    "SELECT task, dependent FROM {s}.dependency WHERE (task, dependent) > ($1, $2) ORDER BY task, dependent";

/// The query for the items of batches.
const BATCH_ITEMS: &str = "SELECT task, batch FROM {s}.batch_item WHERE task > $1 AND $2 = 0 ORDER BY task";

impl Source for PostgresSource {
    async fn next(&mut self) -> Result<Option<ChangeSet>> {
        if matches!(self.section, Section::Nothing) {
            return Ok(None);
        }
        let (piece, next) = self.read().await?;
        self.section = next;
        Ok(Some(piece))
    }

    async fn end(self) -> Result<()> {
        let lock = format!("COMMIT; {BEGIN}");
        self.client.batch_execute(&self.sql.and_lock(&lock)).await.map_err(classified)?;
        let (stamp, _) = stamp(&self.client, &self.sql).await?;
        // Rows of the inbox and completions have not moved any of the compared numbers yet.
        let (has_tasks, has_completions) = inbox::is_waiting(&self.client, &self.sql).await?;
        self.client.batch_execute("COMMIT").await.map_err(classified)?;
        if stamp != self.stamp {
            return Err(Error::invalid(
                "another process changed the store while it was copied; stop every process that uses it, and copy again",
            ));
        }
        if has_tasks || has_completions {
            return Err(Error::invalid(
                "tasks that `onward_submit` submitted wait in the inbox, or tasks that `onward_complete` completed have not ended, and would not be copied; \
                 stop the callers of these functions, let a node take over the rows (start one once, or wait for one that runs), and copy again",
            ));
        }
        Ok(())
    }
}

/// Reads the store's numbers, and the server's time in microseconds.
async fn stamp(client: &OwnedConnection, sql: &Sql) -> Result<(Stamp, i64)> {
    let text = "SELECT (SELECT last_value FROM {s}.last_task), (SELECT last_value FROM {s}.last_session), \
                (SELECT last_value FROM {s}.ends), (SELECT last_value FROM {s}.last_entry), \
                (SELECT last_value FROM {s}.last_write), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let rows = client.query_typed(&sql.text(text), &[]).await.map_err(classified)?;
    let row = rows.first().ok_or_else(Error::closed)?;
    let number = |at: usize| row.try_get::<_, i64>(at).map_err(classified);
    let counters =
        Counters { last_task: number(0)?, last_session: number(1)?, ends: number(2)?, last_entry: number(3)? };
    Ok((Stamp { counters, write: number(4)? }, number(5)?))
}

/// Returns the steady time at a time of the server's clock.
fn steady(options: &PostgresOptions, now: i64) -> Duration {
    let of_server = ServerClock::default().received(now).steady;
    options.clock.as_ref().map_or(of_server, |clock: &Arc<dyn Clock>| clock.steady())
}

/// A target that writes a store in one transaction, which is rolled back if this is dropped.
#[derive(Debug)]
pub(crate) struct PostgresTarget {
    client: OwnedConnection,
    sql: Sql,
    steady: Duration,
}

impl PostgresTarget {
    /// Begins a new store, or fills an empty one. Processes that have it open wait in the meantime.
    pub(crate) async fn new(url: &str, options: PostgresOptions) -> Result<Self> {
        let (address, options) = options.read(url)?;
        let client = connect(&address).await?;
        let sql = Sql { schema: options.schema.clone() };
        let begin = format!("{BEGIN}; SET LOCAL idle_in_transaction_session_timeout = 0");
        client.batch_execute(&sql.and_lock(&begin)).await.map_err(classified)?;
        migrate::within(&client, &sql, options.migrations).await?;
        let there = "SELECT EXISTS (SELECT 1 FROM {s}.task) OR EXISTS (SELECT 1 FROM {s}.history) OR EXISTS (SELECT 1 FROM {s}.small_state) \
                     OR EXISTS (SELECT 1 FROM {s}.log) OR EXISTS (SELECT 1 FROM {s}.document), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        let rows = client.query_typed(&sql.text(there), &[]).await.map_err(classified)?;
        let row = rows.first().ok_or_else(Error::closed)?;
        if row.get(0) {
            return Err(Error::invalid(format!(
                "the store in the schema `{}` is not empty; name another schema behind `#`, or drop this one",
                sql.schema
            )));
        }
        let steady = steady(&options, row.get(1));
        Ok(Self { client, sql, steady })
    }
}

const COUNT_DOCUMENTS: &str = "INSERT INTO {s}.document_collection (name, documents) \
     SELECT collection, count(*) FROM {s}.document GROUP BY collection";

impl Target for PostgresTarget {
    fn steady(&self) -> Duration {
        self.steady
    }

    async fn put(&mut self, piece: ChangeSet) -> Result<()> {
        save_rows(&self.client, &self.sql, &piece).await.map_err(classified)
    }

    async fn end(self, counters: Counters) -> Result<()> {
        self.client.query_typed(&self.sql.text(COUNT_DOCUMENTS), &[]).await.map_err(classified)?;
        // Sequences are not rolled back, so they are set last. A sequence that is back at its
        // beginning has assigned no number yet.
        let text = "SELECT setval('{s}.last_task', greatest($1, last_value)) FROM {s}.last_task UNION ALL \
                    SELECT setval('{s}.last_session', greatest($2, last_value)) FROM {s}.last_session UNION ALL \
                    SELECT setval('{s}.ends', greatest($3, last_value)) FROM {s}.ends UNION ALL \
                    SELECT setval('{s}.last_entry', greatest($4, last_value)) FROM {s}.last_entry UNION ALL \
                    SELECT setval('{s}.last_small_state', last_value + 1) FROM {s}.last_small_state UNION ALL \
                    SELECT setval('{s}.last_invalidation', last_value + 1) FROM {s}.last_write UNION ALL \
                    SELECT setval('{s}.last_write', last_value + 1) FROM {s}.last_write";
        let Counters { last_task, last_session, ends, last_entry } = counters;
        let values: [(&(dyn ToSql + Sync), Type); 4] =
            [(&last_task, Type::INT8), (&last_session, Type::INT8), (&ends, Type::INT8), (&last_entry, Type::INT8)];
        self.client.query_typed(&self.sql.text(text), &values).await.map_err(classified)?;
        self.client.batch_execute("COMMIT").await.map_err(classified)?;
        self.client.batch_execute(&self.sql.text("ANALYZE {s}.task, {s}.history")).await.map_err(classified)
    }
}
