//! A store that is only read: without the write lock, without room on the disk, and without
//! notifying other processes.
//!
//! The reader rebuilds the writer's state in memory from the file, as a writer does when it opens
//! the file. Two things would have to be written before they can be read. One is SQLite's index
//! `<file>-shm`, if no process has the store open. If the disk is full, the reader has the index in
//! memory, and locks the file. The other is the deferred tags, which the reader puts into temporary
//! tables in memory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::api::error::{Error, Result};
use crate::api::notification::{NotificationReceiver, NotificationSender};
use crate::api::outcome::Outcome;
use crate::api::read::{Read, ReadMethods, ReadReply};
use crate::api::store::{Changes, Hint, Store, StoreFuture, StoreInfo};
use crate::api::write::Write;
use crate::bounds;
use crate::clock::Clock;
use crate::sqlite::columns::durations::microseconds;
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::deferred_tags::{self, NewTags};
use crate::sqlite::file_layer;
use crate::sqlite::file_layer::log_owner::{check_log, log_bytes};
use crate::sqlite::file_layer::store_files::{CommitOutcome, FilePaths, leave_log};
use crate::sqlite::limits::deferred_counters::ClockReading;
use crate::sqlite::migrations::migrate::check_schema;
use crate::sqlite::processes::lock_wait::wait_for_locks;
use crate::sqlite::processes::peers::ended;
use crate::sqlite::reads;
use crate::sqlite::store::connect::{check_before_open, check_there, named, open_through, real_path};
use crate::sqlite::store::file_reads::{FileReads, ready};
use crate::sqlite::store::maintenance::{CheckReport, check_file};
use crate::sqlite::store::open::SqliteOptions;
use crate::sqlite::store::sqlite_errors::in_file;
use crate::watch;

/// The number of prepared statements that are cached. Each combination of filter conditions needs
/// one.
const STATEMENTS: usize = 192;

/// The number of attempts to open a file that another process opens or closes at the same moment.
const TRIES: u32 = 100;

/// A store in a SQLite file that is only read.
///
/// * Reads wait for no writer, of Onward or of another program, and need no room on the disk.
/// * Other processes do not detect it. Its [`changes`](Store::changes) report nothing.
/// * [`apply`](Store::apply) is an error.
///
/// If no process has the store open and the disk is full, the file is locked until this value is
/// dropped.
#[derive(Debug)]
pub struct SqliteReader {
    /// The connection. Reads take turns.
    connection: Mutex<Connection>,
    /// The path of the file.
    path: PathBuf,
    /// The files, to detect a replaced one.
    paths: FilePaths,
    /// The clock of the store.
    clock: Arc<dyn Clock>,
    /// The description of the store.
    info: StoreInfo,
    /// A channel without events.
    hints: watch::Sender<Hint>,
    /// A channel without notifications.
    notifications: NotificationSender,
}

impl SqliteOptions {
    /// Opens an existing file to read it. A store of an older schema is migrated first, which
    /// writes.
    ///
    /// # Errors
    /// As [`open`](Self::open), except for a full disk, a locked file, and a
    /// [read-only](Error::is_read_only) file system. On the latter a store can be read if its last
    /// process has closed it.
    #[expect(clippy::unused_async, reason = "opening another kind of store waits, and callers should not care")]
    pub async fn open_to_read(self, path: impl AsRef<Path>) -> Result<SqliteReader> {
        let path = path.as_ref();
        self.open_reader(path).map_err(|error| named(path, error))
    }

    /// Opens a file to read it. An older schema is migrated first, which needs a writer.
    fn open_reader(self, path: &Path) -> Result<SqliteReader> {
        let path = real_path(path);
        check_there(&path, false)?;
        check_before_open(&path)?;
        let mut connection = open(&path, self.vfs_name())?;
        if check_schema(&connection, self.migrations())? < self.migrations().newest() {
            drop(connection);
            drop(self.clone().brief(true).create(false).open_file(&path)?);
            connection = open(&path, self.vfs_name())?;
        }
        connection.pragma_update(None, "query_only", true)?;
        Ok(SqliteReader {
            paths: FilePaths::of_database(&path)?,
            clock: self.clock_of(),
            info: self.info_of(&path),
            hints: watch::Sender::new(Hint::default()),
            notifications: NotificationSender::new(),
            connection: Mutex::new(connection),
            path,
        })
    }
}

/// Opens a connection that can read.
fn open(path: &Path, vfs: Option<&str>) -> Result<Connection> {
    let (mut tries, layer) = (0, file_layer::over(vfs)?);
    loop {
        let failure = match first_read(connect(path, &layer)?, path) {
            Err(error) if error.is_full() => error,
            Err(error) if is_on_read_only_disk(path) => return open_unchanging(path, &layer).map_err(|_| error),
            outcome => return outcome,
        };
        // No process has the store open, because then the index would exist.
        match open_alone(path, &layer) {
            Err(error) if error.is_transient() && !error.is_full() && tries < TRIES => tries += 1,
            Err(error) if error.is_transient() => return Err(failure),
            outcome => return outcome,
        }
    }
}

/// Connects to a file.
fn connect(path: &Path, layer: &str) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = open_through(path, flags, layer)?;
    wait_for_locks(&mut connection, path)?;
    Ok(connection)
}

/// Opens a connection that has SQLite's index of the log in memory, and locks the file.
fn open_alone(path: &Path, layer: &str) -> Result<Connection> {
    let mut connection = connect(path, layer)?;
    connection.busy_handler(None::<fn(i32) -> bool>)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    first_read(connection, path)
}

/// Opens a connection to a file that no process can change.
fn open_unchanging(path: &Path, layer: &str) -> Result<Connection> {
    if log_bytes(path) > 0 {
        return Err(Error::read_only("the log of the store has not been copied back"));
    }
    let name = path.to_str().ok_or_else(|| Error::invalid("the path is not UTF-8"))?;
    let name = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = open_through(Path::new(&format!("file:{name}?immutable=1")), flags, layer)?;
    first_read(connection, path)
}

/// Returns true if a file is on a disk that is mounted read-only.
fn is_on_read_only_disk(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK) == Err(rustix::io::Errno::ROFS)
}

/// Applies the settings to a connection, and makes a first read, which shows if it can read.
fn first_read(connection: Connection, path: &Path) -> Result<Connection> {
    leave_log(&connection);
    check_log(&connection, path)?;
    leave_log(&connection);
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    rusqlite::vtab::array::load_module(&connection)?;
    // As on the writing connection: otherwise SQLite plans a statement with a bound LIMIT again at
    // each call.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -8_192)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

impl SqliteReader {
    /// Checks the whole store and returns its faults, as
    /// [`SqliteStore::check`](crate::SqliteStore::check) does.
    ///
    /// # Errors
    /// If the store could not be read at all.
    #[expect(clippy::unused_async, reason = "reading elsewhere will wait, and callers should not care")]
    pub async fn check(&self) -> Result<CheckReport> {
        self.read_file(|connection| check_file(connection, &self.path))
    }
}

impl FileReads for SqliteReader {
    fn clock_ref(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Runs `read` in a transaction, so that all of it sees one moment.
    fn read_file<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.unchecked_transaction()?;
        let outcome = read(&transaction).map_err(|error| in_file(&connection, error));
        let ended = transaction.finish();
        // A replaced file may be the cause of an error, so it is reported instead.
        self.paths.check(CommitOutcome::NotWritten)?;
        let read = outcome?;
        ended?;
        Ok(read)
    }

    /// Runs a read that needs the state that a writer has in memory.
    fn read_with_cache<T>(&self, read: impl FnOnce(&Database<'_>, &mut Cache) -> Result<T>) -> Result<T> {
        let moment =
            ClockReading { wall: self.clock.now().as_microseconds(), steady: microseconds(self.clock.steady()) };
        self.read_file(|connection| {
            let database = Database::from(connection);
            let mut cache = Cache::load(&database, moment)?;
            read(&database, &mut cache)
        })
    }

    /// Runs a read, with the deferred tags in temporary tables if `by_tags`.
    fn read_by_tags<'a, T: Send + 'a>(
        &'a self,
        by_tags: bool,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        if !by_tags {
            return ready(self.read_file(read));
        }
        ready(self.read_file(|connection| {
            let new = NewTags::load(&Database::from(connection))?;
            if new.is_empty() {
                read(connection)
            } else {
                deferred_tags::with_all(connection, new, || read(connection))
            }
        }))
    }

    /// Returns the ended processes that still have sessions.
    fn ended_processes(&self) -> Result<BTreeSet<String>> {
        Ok(ended(&self.path, self.read_file(reads::sessions::processes)?))
    }
}

impl Store for SqliteReader {
    fn apply(&self, _writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        ready(Err(Error::read_only("the store was opened to be read; open it to write to it")))
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        self.dispatch(read)
    }

    fn changes(&self) -> Changes {
        Changes::new(&self.hints)
    }

    fn notifications(&self) -> NotificationReceiver {
        self.notifications.subscribe()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn claim_size(&self) -> usize {
        bounds::CLAIM_OF_SEVERAL
    }

    fn info(&self) -> StoreInfo {
        self.info.clone()
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::store::{Page, TaskFilter};
    use crate::api::tag::TagPage;
    use crate::api::task::{NewTask, TaskId};
    use crate::sqlite::store::sqlite_store::SqliteStore;

    /// Returns a store that has deferred tags, and a reader of its file.
    async fn store_and_reader(directory: &tempfile::TempDir) -> (SqliteStore, SqliteReader) {
        let path = directory.path().join("onward.db");
        let store = SqliteStore::open(&path).await.unwrap();
        let mut task = NewTask::new("mail").unwrap();
        task.tags.set("customer", "7");
        store.apply(vec![Write::Submit(Box::new(task))]).await.unwrap();
        (store, SqliteStore::options().open_to_read(&path).await.unwrap())
    }

    fn of_customer() -> TaskFilter {
        let mut filter = TaskFilter::default();
        filter.tags.set("customer", "7");
        filter
    }

    #[tokio::test]
    async fn tags_are_found_that_are_in_no_table_yet_and_none_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let (store, reader) = store_and_reader(&directory).await;
        assert_eq!(reader.count(of_customer()).await.unwrap(), 1);
        assert_eq!(reader.tag_keys(String::new(), TagPage::default()).await.unwrap().keys, ["customer"]);
        assert_eq!(reader.tasks(of_customer(), Page::default()).await.unwrap().tasks.len(), 1);
        let written: i64 =
            store.committer().connection.query_row("SELECT count(*) FROM task_tag", [], |row| row.get(0)).unwrap();
        assert_eq!(written, 0);
    }

    #[tokio::test]
    async fn what_is_read_is_what_its_store_reads() {
        let directory = tempfile::tempdir().unwrap();
        let (store, reader) = store_and_reader(&directory).await;
        assert_eq!(reader.queues().await.unwrap(), store.queues().await.unwrap());
        assert_eq!(reader.why(TaskId(1)).await.unwrap(), store.why(TaskId(1)).await.unwrap());
        assert_eq!(reader.task(TaskId(1)).await.unwrap(), store.task(TaskId(1)).await.unwrap());
        assert_eq!(reader.limits().await.unwrap(), store.limits().await.unwrap());
    }

    #[tokio::test]
    async fn what_is_opened_to_be_read_is_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let (_store, reader) = store_and_reader(&directory).await;
        let error = reader.apply(vec![Write::Sweep]).await.unwrap_err();
        assert!(error.is_read_only(), "{error}");
    }
}
