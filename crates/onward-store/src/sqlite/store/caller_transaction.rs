//! Submits and completes tasks in the caller's transaction, on the caller's own connection to the
//! store's file.
//!
//! No code here may wait for the [`Committer`]. The caller's transaction may hold SQLite's write
//! lock, and the thread that holds the `Committer` may wait for that lock. A caller that waited for
//! the `Committer` would block both until the thread gives up. So everything needed after the
//! commit is reached without it: hints, the peers' lock files, the trigger. Everything needed
//! before, such as the index and the names, is read from the file.
//!
//! The store detects these writes like those of another process: `PRAGMA data_version` differs, and
//! the store reloads its cache.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, MAIN_DB, OptionalExtension};

use crate::api::error::{Error, Result};
use crate::api::notification::NotificationSender;
use crate::api::outcome::Submitted;
use crate::api::store::Hint;
use crate::api::task::NewTask;
use crate::clock::Clock;
use crate::sqlite::columns::durations::microseconds;
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::committer::Committer;
use crate::sqlite::commit::transaction::{Transaction, VerbError};
use crate::sqlite::commit::transition_log::LogBuffer;
use crate::sqlite::file_layer;
use crate::sqlite::file_layer::store_files::{CommitOutcome, FilePaths};
use crate::sqlite::limits::deferred_counters::ClockReading;
use crate::sqlite::processes::checkpoint_trigger::CheckpointTrigger;
use crate::sqlite::processes::notification_watermark::NotificationWatermark;
use crate::sqlite::processes::peers::{PeerProcesses, PeerWakers};
use crate::sqlite::ready::index::MemoryTasks;
use crate::sqlite::store::sqlite_store::SqliteStore;
use crate::watch;

/// The parts of an open store that serve callers with transactions of their own.
#[derive(Debug)]
pub(in crate::sqlite) struct CallerTransactions {
    /// The canonical path.
    pub(in crate::sqlite) path: PathBuf,
    /// The store's files, to check that the caller's connection is on them.
    paths: Option<Arc<FilePaths>>,
    /// True if pages have checksums, so that the caller's connection must go through our layer.
    page_checksums: bool,
    /// The store's clock.
    clock: Arc<dyn Clock>,
    /// The largest payload or result, in bytes.
    payload_limit: usize,
    /// Set by the first write of a caller. The store then moves its index to the tables.
    write: Arc<AtomicBool>,
    /// The task number up to which waiting callers were notified.
    notified: Arc<NotificationWatermark>,
    /// The log entry up to which waiting callers were notified.
    notified_entries: Arc<NotificationWatermark>,
    /// The channel for hints.
    hints: watch::Sender<Hint>,
    /// The channel for notifications of ended tasks.
    notifications: NotificationSender,
    /// The lock files of peers.
    wakers: PeerWakers,
    /// The trigger of the housekeeping thread.
    checkpoint_trigger: Arc<CheckpointTrigger>,
}

impl CallerTransactions {
    /// Collects the parts from a committer.
    pub(in crate::sqlite) fn new(
        committer: &Committer,
        path: PathBuf,
        page_checksums: bool,
        checkpoint_trigger: Arc<CheckpointTrigger>,
    ) -> Self {
        Self {
            path,
            paths: committer.file.as_ref().map(|file| Arc::clone(file.paths())),
            page_checksums,
            clock: Arc::clone(&committer.clock),
            payload_limit: committer.payload_limit,
            write: Arc::clone(&committer.callers_write),
            notified: Arc::clone(&committer.notified),
            notified_entries: Arc::clone(&committer.notified_entries),
            hints: committer.hints.clone(),
            notifications: committer.notifications.clone(),
            wakers: committer.peers.as_ref().map(PeerProcesses::wakers).cloned().unwrap_or_default(),
            checkpoint_trigger,
        }
    }

    /// Rejects a connection on which writes would be lost or would fail half-way.
    pub(in crate::sqlite) fn check(&self, connection: &Connection) -> Result<()> {
        if connection.is_autocommit() {
            return Err(Error::invalid(
                "no transaction has begun on the connection; begin one with `BEGIN IMMEDIATE`, write, and commit it",
            ));
        }
        let path = connection.path().unwrap_or_default();
        if std::fs::canonicalize(Path::new(path)).ok().as_deref() != Some(&*self.path) {
            return Err(Error::invalid(format!(
                "the connection is on {} and the store on {}; open the connection on the store's file",
                if path.is_empty() { "no file" } else { path },
                self.path.display()
            )));
        }
        if let Some(paths) = &self.paths {
            paths.check(CommitOutcome::NotWritten)?;
        }
        if file_layer::has_moved(connection) {
            return Err(Error::replaced(format!(
                "the connection has a file open that is no longer at {}; open it again",
                self.path.display()
            )));
        }
        if self.page_checksums && !file_layer::goes_through_layer(connection) {
            return Err(Error::invalid(
                "the pages of the store's file have checksums, which the connection would not write; get one from `SqliteStore::connect`",
            ));
        }
        if connection.is_readonly(MAIN_DB)? {
            return Err(Error::read_only("the connection only reads; open it with the right to write"));
        }
        check_names(connection)
    }

    /// Runs `work` in the caller's transaction. It changes nothing outside the file.
    pub(in crate::sqlite) fn work<T>(
        &self,
        connection: &Connection,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<(T, Written)> {
        let (now, steady) = (self.clock.now(), microseconds(self.clock.steady()));
        let mut cache = Cache::load(&connection.into(), ClockReading { wall: now.as_microseconds(), steady })?;
        let (first, first_entry) = (cache.next_task, cache.next_log);
        let mut transaction = Transaction {
            connection: &connection.into(),
            cache: &mut cache,
            now,
            steady,
            payload_limit: self.payload_limit,
            memory_tasks: MemoryTasks::default(),
            process: "",
            log: LogBuffer::default(),
            statistics: rustc_hash::FxHashMap::default(),
            hint: Hint::default(),
            work_before: 0,
            notifications: Some(Vec::new()),
            completions: Vec::new(),
            unpropagated_ends: std::collections::VecDeque::new(),
            counters_are_read: false,
        };
        let done = work(&mut transaction)?;
        // Written at once: the store does not know of these tags, so a search by tags would not
        // write them first.
        transaction.write_tags()?;
        transaction.finish()?;
        let ended = transaction.notifications.as_ref().is_some_and(|notifications| !notifications.is_empty());
        let (next, next_entry) = (transaction.cache.next_task, transaction.cache.next_log);
        Ok((done, Written { hint: transaction.hint, ended, tasks: (first, next), entries: (first_entry, next_entry) }))
    }

    /// Notifies the waiting callers of this process and of other processes.
    pub(in crate::sqlite) fn notify(&self, written: &Written) {
        self.notified.advance(written.tasks.0, written.tasks.1);
        self.notified_entries.advance(written.entries.0, written.entries.1);
        if written.ended {
            // The ended tasks are not named. The store may have reported later commits already, and
            // notifications must be in the order of commits.
            self.notifications.notify_missed();
        }
        if written.hint != Hint::default() {
            self.hints.send_modify(|hint| hint.add(written.hint));
            self.wakers.wake();
        }
    }

    /// Records that callers write on their own connections. The store then moves its index to the
    /// tables, so that callers need not build it from the tasks each time. It also checks once a
    /// second for a commit that a caller did not report.
    pub(in crate::sqlite) fn note(&self) {
        if !self.write.swap(true, Ordering::AcqRel) {
            self.checkpoint_trigger.fire();
        }
    }
}

/// The changes of a caller's transaction, for the notifications after its commit.
#[derive(Debug)]
pub(in crate::sqlite) struct Written {
    /// The kinds of changes.
    hint: Hint,
    /// True if tasks ended in the transaction.
    ended: bool,
    /// The number of the next task before and after it.
    tasks: (i64, i64),
    /// The number of the next entry of the log before and after it.
    entries: (i64, i64),
}

/// Rejects a connection with a temporary table that hides one of the store's. SQLite searches
/// temporary tables first, and our statements name no schema.
fn check_names(connection: &Connection) -> Result<()> {
    let hidden: Option<String> = connection
        .prepare_cached(include_str!("../sql/store/hidden_table.sql"))?
        .query_row([], |row| row.get(0))
        .optional()?;
    match hidden {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!(
            "the connection has something temporary named `{name}`, which hides the table of that name; give it another name"
        ))),
    }
}

/// Runs `work` in the caller's transaction, and undoes it if it fails, so that the transaction can
/// continue.
pub(super) fn in_savepoint<T>(connection: &Connection, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let execute = |sql| connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
    execute("SAVEPOINT onward_write")?;
    match work() {
        Ok(done) => {
            execute("RELEASE onward_write")?;
            Ok(done)
        }
        // SQLite has ended the transaction by itself, as it does if the disk is full.
        Err(error) if connection.is_autocommit() => Err(error.about("the transaction was rolled back as a whole")),
        Err(error) => {
            let undone = execute("ROLLBACK TO onward_write").and_then(|_| execute("RELEASE onward_write"));
            undone.map_err(|failure| Error::from(failure).about("what failed was not undone; roll back"))?;
            Err(error)
        }
    }
}

/// Tasks written in a transaction of the caller, which exist when that transaction commits.
///
/// Commit, then call [`committed`](Self::committed), which wakes workers. After a rollback drop
/// this value; it does nothing then.
#[must_use = "workers sleep until `committed` is called after the commit"]
#[derive(Debug)]
pub struct SubmittedInTransaction<'s> {
    /// The parts of the store that serve callers.
    callers: &'s CallerTransactions,
    /// The outcomes.
    submitted: Vec<Submitted>,
    /// The changes to notify of.
    written: Written,
}

impl SubmittedInTransaction<'_> {
    /// Returns the outcome of each task, in order. The task numbers are valid once the transaction
    /// has committed. After a rollback other tasks may get them.
    #[must_use]
    pub fn submitted(&self) -> &[Submitted] {
        &self.submitted
    }

    /// Wakes workers, in this process and in other processes. Call it when the transaction has
    /// committed. Returns the same as [`submitted`](Self::submitted).
    ///
    /// A missing or early call loses nothing, nor does a process that dies before it. Each process
    /// that has the store open detects new tasks by itself, about a second later. The call never
    /// waits for a transaction.
    pub fn committed(mut self) -> Vec<Submitted> {
        self.callers.notify(&self.written);
        std::mem::take(&mut self.submitted)
    }
}

impl Drop for SubmittedInTransaction<'_> {
    /// Runs at the drop and not earlier: it makes the store write to the file, which would wait for
    /// the caller's transaction.
    fn drop(&mut self) {
        self.callers.note();
    }
}

impl SqliteStore {
    /// Submits tasks in the caller's own transaction: they become durable together with the
    /// caller's other writes, or not at all. This is a transactional outbox without a second
    /// system.
    ///
    /// `connection` is the caller's connection to the store's file, in a transaction. All tasks are
    /// accepted, or none. They exist when the caller commits, and are as durable as the
    /// connection's settings make them. By default they survive power loss.
    ///
    /// ```
    /// use onward_store::rusqlite::{Connection, TransactionBehavior};
    /// use onward_store::{NewTask, SqliteStore};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("shop.db");
    /// let store = SqliteStore::open(&path).await?;
    /// let mut connection = Connection::open(&path)?;
    /// connection.execute(
    ///     "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)",
    ///     [],
    /// )?;
    ///
    /// let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    /// transaction.execute("INSERT INTO orders (item) VALUES (?)", ["tea"])?;
    /// let mut mail = NewTask::new("mail")?;
    /// mail.payload = format!("order {} has arrived", transaction.last_insert_rowid()).into();
    /// let submitted = store.submit_in(&transaction, &[mail])?;
    /// transaction.commit()?;
    /// submitted.committed();
    /// # Ok(()) }
    /// ```
    ///
    /// * **Begin with `BEGIN IMMEDIATE`.** A transaction that has read before it writes fails when
    ///   another connection has written in the meantime.
    /// * **Keep it short, and wait for nothing of this store within it.** While it writes, every
    ///   write to the store waits for it, up to 30 seconds. If the transaction waits for such a
    ///   write, both block until that time has passed.
    /// * **Open the store first**: it creates the file. Its tables have names such as `task`,
    ///   `queue` and `history`, and a later version may add more. So give your own tables a prefix.
    /// * The connection's settings stay as they are. Its hooks see the rows of the tasks, and its
    ///   last insert row id changes. Its statement cache is used: if you call this often, make it
    ///   32 statements larger.
    /// * It blocks, as SQLite does. On an async runtime use a thread that may block.
    ///
    /// Cost: beyond that of a [submit](crate::Write::Submit), it reads the names of queues and
    /// kinds and the pauses. The first calls also read up to 131 072 waiting tasks. From then on
    /// the store has its index in tables until it is closed, as with several processes. Its own
    /// writes then cost somewhat more.
    ///
    /// # Errors
    /// The transaction is as it was and can continue, unless the disk is full or faulty. Then
    /// SQLite rolls back the whole transaction, and later statements on the connection are in none.
    /// The error says so, and so does [`is_autocommit`](Connection::is_autocommit).
    ///
    /// [`is_invalid`](Error::is_invalid) if a task exceeds a bound, if there are more than 100 000
    /// tasks, if no transaction has begun, or if the store is in memory. Also if the connection is
    /// on another file, or has a temporary table with the name of one of the store's.
    ///
    /// [`is_read_only`](Error::is_read_only) if the connection only reads.
    ///
    /// [`is_transient`](Error::is_transient) if the file is locked for longer than the connection
    /// waits, if the disk is full, or if the transaction has read before another connection wrote
    /// (roll it back and repeat it).
    pub fn submit_in(&self, connection: &Connection, tasks: &[NewTask]) -> Result<SubmittedInTransaction<'_>> {
        let callers = self.callers_of(connection)?;
        let submit = |transaction: &mut Transaction<'_>| transaction.submit_all(tasks).map_err(VerbError::into_error);
        let (submitted, written) = in_savepoint(connection, || callers.work(connection, submit))?;
        Ok(SubmittedInTransaction { callers, submitted, written })
    }

    /// Returns the parts of the store for the caller of this connection, or an error if writes on
    /// it would be lost.
    pub(super) fn callers_of(&self, connection: &Connection) -> Result<&CallerTransactions> {
        let callers = self.callers().ok_or_else(|| {
            Error::invalid("the store is in memory, which has no transactions of callers; open one in a file")
        })?;
        callers.check(connection)?;
        Ok(callers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::notification::{Notification, NotificationReceiver, TaskNotification};
    use crate::api::store::Store as _;
    use crate::api::task::TaskId;
    use crate::sqlite::columns::meta::meta;
    use crate::sqlite::ready::index::ALL_IN_TABLES;

    /// A notification that no other code of the test sends.
    const LAST: TaskNotification = TaskNotification::Ended { task: TaskId(99) };

    /// Submits and commits, and leaves the call of `committed` to the test.
    fn submit(store: &SqliteStore) -> SubmittedInTransaction<'_> {
        let connection = Connection::open(&store.callers().unwrap().path).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let submitted = store.submit_in(&connection, &[NewTask::new("mail").unwrap()]).unwrap();
        connection.execute_batch("COMMIT").unwrap();
        submitted
    }

    async fn open(directory: &tempfile::TempDir) -> SqliteStore {
        SqliteStore::open(directory.path().join("onward.db")).await.unwrap()
    }

    #[tokio::test]
    async fn a_store_to_whose_file_callers_write_keeps_its_index_in_the_tables() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory).await;
        submit(&store).committed();
        let mut committer = store.committer();
        committer.update_peers(true).unwrap();
        assert_eq!(meta(&committer.connection.database(), "index_watermark").unwrap(), ALL_IN_TABLES);
        committer.adapt_to_peers().unwrap();
        assert_eq!(meta(&committer.connection.database(), "index_watermark").unwrap(), ALL_IN_TABLES);
    }

    #[tokio::test]
    async fn a_task_is_noticed_without_a_notification() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory).await;
        let before = store.changes().hint();
        std::mem::forget(submit(&store));
        store.committer().notify_missed_tasks().unwrap();
        assert!(store.changes().hint().work > before.work);
    }

    /// Returns the next notification of the store.
    async fn received(store: &SqliteStore, notifications: &mut NotificationReceiver) -> Option<Notification> {
        store.committer().notifications.notify(vec![LAST]);
        notifications.next().await
    }

    #[tokio::test]
    async fn a_commit_with_a_notification_is_not_reported_as_missed() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory).await;
        let mut notifications = store.notifications();
        submit(&store).committed();
        store.committer().update_peers(true).unwrap();
        assert_eq!(received(&store, &mut notifications).await, Some(Notification::Tasks([LAST].into())));
    }

    #[tokio::test]
    async fn a_commit_without_a_notification_is_reported_as_missed() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory).await;
        let mut notifications = store.notifications();
        drop(submit(&store));
        store.committer().update_peers(true).unwrap();
        assert_eq!(received(&store, &mut notifications).await, Some(Notification::Missed));
    }

    #[tokio::test]
    async fn a_look_that_finds_nothing_new_hints_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory).await;
        std::mem::forget(submit(&store));
        store.committer().notify_missed_tasks().unwrap();
        let before = store.changes().hint();
        store.committer().notify_missed_tasks().unwrap();
        assert_eq!(store.changes().hint(), before);
    }
}
