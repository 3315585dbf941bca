//! The tables: live tasks without a secondary index, claims as a log, and a history of ended tasks.

use std::path::Path;
use std::rc::Rc;

use anyhow::{Result, bail};
use bench_protocol::{Backlog, DurabilityLevel};
use rusqlite::types::Value;
use rusqlite::{Connection, params};

const SCHEMA: &str = "
    CREATE TABLE task (
        id INTEGER PRIMARY KEY, lane INTEGER, priority INTEGER, attempt INTEGER, submitted_at INTEGER, payload BLOB);
    CREATE TABLE claim (number INTEGER PRIMARY KEY, ids BLOB);
    CREATE TABLE history (
        id INTEGER PRIMARY KEY, lane INTEGER, state INTEGER, attempts INTEGER, submitted_at INTEGER, finished_at INTEGER,
        payload BLOB, result BLOB);";

const INSERT: &str = "INSERT INTO task VALUES (?1, 1, 128, 0, ?2, ?3)";
const CLAIM: &str = "INSERT INTO claim (ids) VALUES (?1)";
const TO_HISTORY: &str = "INSERT INTO history
    SELECT task.id, task.lane, 4, 1, task.submitted_at, ?2, task.payload, NULL
    FROM rarray(?1) AS done CROSS JOIN task ON task.id = done.value";
const DELETE: &str = "DELETE FROM task WHERE id IN rarray(?1)";

/// The timestamp of all rows, because the ceiling does not read the clock.
const MOMENT: i64 = 1_750_000_000_000_000;

/// The intervals of checkpoints: the write-ahead log is copied back after this many tasks completed
/// or submitted alone, or this many commits, whichever comes first. Then it is written again from
/// its beginning, which syncs faster than a file that grows.
const CHECKPOINT_TASKS: usize = 16_384;
const CHECKPOINT_COMMITS: usize = 2048;

/// The size to which the log grows before the timed part.
const LOG_BYTES: i64 = 16 * 1024 * 1024;

/// A database in a file of its own.
pub(crate) struct Database {
    connection: Connection,
    payload: Vec<u8>,
    /// Tasks and commits since the last checkpoint.
    tasks: usize,
    commits: usize,
    /// Pages written to the log up to the last checkpoint.
    pages: u64,
}

impl Database {
    pub(crate) fn create(path: &Path, durability: DurabilityLevel, payload: Vec<u8>) -> Result<Self> {
        let synchronous = match durability {
            DurabilityLevel::Full => "FULL",
            DurabilityLevel::Normal => "NORMAL",
            DurabilityLevel::Memory => bail!("the ceiling is for files"),
        };
        let connection = Connection::open(path)?;
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA wal_autocheckpoint = 0;
             PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;"
        ))?;
        rusqlite::vtab::array::load_module(&connection)?;
        connection.execute_batch(SCHEMA)?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(Self { connection, payload, tasks: 0, commits: 0, pages: 0 })
    }

    /// Inserts the backlog of the row before the timed part. Waiting tasks get the ids from 1;
    /// delayed ones get lower ids.
    pub(crate) fn fill(&mut self, backlog: &Backlog) -> Result<()> {
        self.begin()?;
        let first = 1 - i64::try_from(backlog.delayed)?;
        (first..=i64::try_from(backlog.waiting)?).try_for_each(|id| self.submit(id))?;
        let mut history = self.connection.prepare("INSERT INTO history VALUES (?1, 1, 4, 1, ?2, ?2, ?3, NULL)")?;
        for id in -i64::try_from(backlog.finished)?..0 {
            history.execute(params![id, MOMENT, self.payload])?;
        }
        drop(history);
        self.commit()?;
        self.grow_log()?;
        self.checkpoint()
    }

    /// Grows the log to the size that it keeps, so that no commit of the timed part extends the
    /// file.
    fn grow_log(&self) -> Result<()> {
        self.connection.execute_batch("CREATE TABLE filler (bytes BLOB)")?;
        self.connection.execute("INSERT INTO filler VALUES (zeroblob(?1))", [LOG_BYTES])?;
        Ok(self.connection.execute_batch("DROP TABLE filler")?)
    }

    pub(crate) fn begin(&self) -> Result<()> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(())
    }

    pub(crate) fn commit(&self) -> Result<()> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// Inserts a task. Outside a transaction this is a commit of its own.
    pub(crate) fn submit(&self, id: i64) -> Result<()> {
        self.connection.prepare_cached(INSERT)?.execute(params![id, MOMENT + id, self.payload])?;
        Ok(())
    }

    /// Inserts tasks with consecutive ids.
    pub(crate) fn submit_many(&self, ids: std::ops::Range<i64>) -> Result<()> {
        let mut insert = self.connection.prepare_cached(INSERT)?;
        for id in ids {
            insert.execute(params![id, MOMENT + id, self.payload])?;
        }
        Ok(())
    }

    pub(crate) fn claim(&self, ids: &[i64]) -> Result<()> {
        let blob: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        self.connection.prepare_cached(CLAIM)?.execute(params![blob])?;
        Ok(())
    }

    pub(crate) fn complete(&self, ids: &[i64]) -> Result<()> {
        let ids = Rc::new(ids.iter().copied().map(Value::Integer).collect::<Vec<_>>());
        self.connection.prepare_cached(TO_HISTORY)?.execute(params![ids, MOMENT])?;
        self.connection.prepare_cached(DELETE)?.execute(params![ids])?;
        Ok(())
    }

    /// Counts a commit with this many tasks, and copies the log back when a checkpoint is due.
    pub(crate) fn checkpoint_if_due(&mut self, tasks: usize) -> Result<()> {
        self.tasks += tasks;
        self.commits += 1;
        if self.tasks >= CHECKPOINT_TASKS || self.commits >= CHECKPOINT_COMMITS {
            self.checkpoint()?;
            (self.tasks, self.commits) = (0, 0);
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        let pages: i64 = self.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(1))?;
        self.pages += u64::try_from(pages)?;
        Ok(())
    }

    /// Copies the log back. Returns the pages written to the log since the database was created.
    pub(crate) fn pages_logged(&mut self) -> Result<u64> {
        self.checkpoint()?;
        Ok(self.pages)
    }

    pub(crate) fn count(&self, table: &str) -> Result<u64> {
        let count: i64 = self.connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
        Ok(u64::try_from(count)?)
    }
}
