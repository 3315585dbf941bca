//! The store as its callers see it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rusqlite::Connection;

use crate::api::error::{Error, Result};
use crate::api::notification::NotificationReceiver;
use crate::api::outcome::Outcome;
use crate::api::read::{Read, ReadMethods, ReadReply};
use crate::api::store::{Changes, Durability, Store, StoreFuture, StoreInfo};
use crate::api::write::Write;
use crate::bounds;
use crate::clock::Clock;
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::commit_counts::{CommitCounts, CommitSizes};
use crate::sqlite::commit::committer::Committer;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::writer::Writer;
use crate::sqlite::processes::checkpoint_trigger::CheckpointTrigger;
use crate::sqlite::processes::housekeeping;
use crate::sqlite::reads;
use crate::sqlite::store::caller_transaction::CallerTransactions;
use crate::sqlite::store::file_reads::{FileReads, ready};
use crate::sqlite::store::open::SqliteOptions;
use crate::sqlite::store::read_pool::ReadPool;
use crate::sqlite::store::sqlite_errors::in_file;

/// A store in one SQLite file, for one or several processes on one machine.
///
/// * An acknowledgement guarantees what the [durability](SqliteOptions::durability) level promises.
///   Commits are shared: writes that arrive while a commit is in progress join the next one.
/// * Several processes may open the file, on a local disk. A process detects within a second that
///   another one has ended, by its lock, and takes over its running tasks.
/// * The cost of a write does not depend on the number of waiting, scheduled or ended tasks, beyond
///   the depth of a B-tree.
///
/// Beside the file `x.db` there are `x.db-wal` and `x.db-shm`, which belong to it, and the
/// directory `x.db-sessions`.
#[derive(Debug)]
pub struct SqliteStore {
    /// The group commit.
    writer: Writer,
    /// `None` for a store in memory.
    file: Option<OpenFile>,
    /// The description of the store.
    info: StoreInfo,
    /// The clock of the store.
    clock: Arc<dyn Clock>,
    /// The sizes of commits so far.
    sizes: Arc<CommitSizes>,
    /// The hints, with a subscription from before the first write.
    hints: Changes,
    /// True if a search by tags must first have the deferred tags written.
    has_new_tags: Arc<AtomicBool>,
}

/// The parts of a store that exist only for a store in a file.
#[derive(Debug)]
pub(in crate::sqlite) struct OpenFile {
    /// The connections that read.
    pub(super) readers: ReadPool,
    /// The trigger of the housekeeping thread.
    pub(in crate::sqlite) checkpoint_trigger: Arc<CheckpointTrigger>,
    /// The housekeeping thread; `None` after it was joined.
    pub(in crate::sqlite) housekeeping: Option<JoinHandle<()>>,
    /// The parts that serve callers with transactions of their own.
    pub(in crate::sqlite) callers: CallerTransactions,
}

impl SqliteStore {
    /// Assembles a store.
    pub(in crate::sqlite) fn new(
        writer: Writer,
        file: Option<OpenFile>,
        info: StoreInfo,
        clock: Arc<dyn Clock>,
        sizes: Arc<CommitSizes>,
    ) -> Self {
        let (hints, has_new_tags) = {
            let committer = writer.committer();
            (Changes::new(&committer.hints), Arc::clone(&committer.has_new_tags))
        };
        Self { writer, file, info, clock, sizes, hints, has_new_tags }
    }

    /// Returns the options with which to open a store.
    #[must_use]
    pub fn options() -> SqliteOptions {
        SqliteOptions::default()
    }

    /// Opens a file with durability level `full`, and creates it if it is missing.
    ///
    /// # Errors
    /// As [`SqliteOptions::open`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path).await
    }

    /// Returns the number of commits and of the operations in them.
    #[must_use]
    pub fn commit_counts(&self) -> CommitCounts {
        self.sizes.counts()
    }

    /// Locks the committer, after any commit in progress.
    pub(in crate::sqlite) fn committer(&self) -> std::sync::MutexGuard<'_, Committer> {
        self.writer.committer()
    }

    /// Returns the durability level.
    pub(super) fn durability(&self) -> Durability {
        self.info.durability
    }

    /// Returns the parts for callers with transactions of their own; `None` for a store in memory.
    pub(in crate::sqlite) fn callers(&self) -> Option<&CallerTransactions> {
        self.file.as_ref().map(|file| &file.callers)
    }

    /// Reads on a connection of the pool. A store in memory has one connection for everything.
    pub(in crate::sqlite) fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let Some(OpenFile { readers, .. }) = &self.file else { return read(&self.committer().connection) };
        let connection = readers.take()?;
        let outcome = execute(&connection, "BEGIN").and_then(|()| read(&connection));
        let outcome = outcome.map_err(|error| in_file(&connection, error));
        // Checked after the read, because a replaced file may be the cause of its error.
        let outcome = match outcome {
            Err(error) if error.is_corrupt() => Err(self.committer().cause_of(error)),
            outcome => readers.check().and(outcome),
        };
        // A connection whose transaction cannot be ended is closed, which ends it.
        if execute(&connection, "COMMIT").is_ok() {
            readers.give_back(connection);
        }
        outcome
    }
}

/// Runs a statement without values.
fn execute(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}

impl FileReads for SqliteStore {
    fn clock_ref(&self) -> &dyn Clock {
        &*self.clock
    }

    fn read_file<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.read(read)
    }

    /// Runs a read that needs the writer's cache, on the writing connection.
    fn read_with_cache<T>(&self, read: impl FnOnce(&Database<'_>, &mut Cache) -> Result<T>) -> Result<T> {
        let mut committer = self.committer();
        execute(&committer.connection, "BEGIN")?;
        let outcome = committer.refresh().and_then(|()| match committer.cache() {
            Some((database, cache)) => read(&database, cache),
            None => Err(Error::closed()),
        });
        // A read that failed on the disk may have ended the transaction. Its own error is reported
        // then.
        let ended =
            if committer.connection.is_autocommit() { Ok(()) } else { execute(&committer.connection, "COMMIT") };
        let read = outcome.and_then(|read| ended.map(|()| read));
        let checked = self.file.as_ref().map_or(Ok(()), |file| file.readers.check());
        checked.and(read.map_err(|error| in_file(&committer.connection, error)))
    }

    /// Runs a read. If `by_tags`, the deferred tags are written to the tables first.
    fn read_by_tags<'a, T: Send + 'a>(
        &'a self,
        by_tags: bool,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        if !by_tags || !self.has_new_tags.load(Ordering::Acquire) {
            return ready(self.read(read));
        }
        Box::pin(async move {
            self.writer.write_tags().await?;
            self.read(read)
        })
    }

    /// Returns the ended processes that still have sessions. A process creates its lock file before
    /// it opens a session, so the sessions are read first and the peers after them.
    fn ended_processes(&self) -> Result<BTreeSet<String>> {
        let mut processes = self.read(reads::sessions::processes)?;
        let mut committer = self.committer();
        if committer.refresh_peers(false)?
            && let Some(file) = &self.file
        {
            file.checkpoint_trigger.fire();
        }
        processes.retain(|process| !committer.is_running(process));
        Ok(processes)
    }
}

impl Store for SqliteStore {
    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        Box::pin(self.writer.apply(writes))
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        self.dispatch(read)
    }

    fn changes(&self) -> Changes {
        self.hints.clone()
    }

    fn notifications(&self) -> NotificationReceiver {
        self.writer.committer().notifications.subscribe()
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

impl Drop for SqliteStore {
    /// Closes this process's sessions, so that other processes take over their tasks at once, and
    /// copies the write-ahead log into the database.
    fn drop(&mut self) {
        let Some(file) = &mut self.file else { return };
        file.checkpoint_trigger.close();
        if let Some(thread) = file.housekeeping.take() {
            // The thread does not panic. If it did anyway, no caller is left to notify.
            let _ = thread.join();
        }
        file.readers.close();
        let mut committer = self.writer.committer();
        if committer.check_file().is_err() {
            return;
        }
        if committer.has_sessions()
            && let Err(error) = committer.close_sessions()
            && !error.is_replaced()
        {
            tracing::warn!(%error, "the sessions could not be closed; they lapse with the process");
        }
        // A brief process leaves the log to the last process, which copies it when it closes its
        // connection. Many brief processes would each wait for the disk.
        if !committer.is_brief() {
            housekeeping::checkpoint_wal(&committer.connection);
        }
    }
}
