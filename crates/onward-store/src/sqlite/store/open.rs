//! Opens a store: the options, the checks before the file is changed, and the assembly of the
//! parts.

use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;

use crate::api::error::{Error, Result};
use crate::api::notification::NotificationSender;
#[cfg(feature = "postgres")]
use crate::api::outcome::Outcome;
use crate::api::schedule::ScheduleSelection;
use crate::api::store::{Durability, Hint, StoreInfo};
use crate::api::task::check_payload_limit;
#[cfg(feature = "postgres")]
use crate::api::write::Write;
use crate::bounds;
use crate::clock::{Clock, SystemClock};
use crate::migrations::Migrations;
use crate::sqlite::commit::committer::{Committer, CommitterParts};
use crate::sqlite::commit::writer::Writer;
use crate::sqlite::file_layer::log_owner::with_suffix;
use crate::sqlite::file_layer::store_files::{StoreFiles, set_leaves_log};
use crate::sqlite::file_layer::{self, CHECKSUM_BYTES};
use crate::sqlite::migrations::migrate::{MIGRATIONS, check_schema, migrate};
use crate::sqlite::processes::checkpoint_trigger::{self, CheckpointTrigger};
use crate::sqlite::processes::housekeeping;
use crate::sqlite::processes::peers::{PeerProcesses, WakeReason, check_peers};
use crate::sqlite::reads;
use crate::sqlite::ready::index::MemoryTasks;
use crate::sqlite::store::caller_transaction::CallerTransactions;
use crate::sqlite::store::connect::{
    CONNECT, check_place, connect, connect_first, has_page_checksums, is_empty, named, prepare, real_path,
    set_synchronous,
};
use crate::sqlite::store::read_pool::ReadPool;
use crate::sqlite::store::sqlite_store::{OpenFile, SqliteStore};
use crate::watch;

/// The options with which a SQLite store is opened.
///
/// ```no_run
/// # async fn example() -> onward_store::Result<()> {
/// use onward_store::{Durability, SqliteStore};
/// let store = SqliteStore::options().durability(Durability::Normal).open("onward.db").await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The durability level.
    durability: Durability,
    /// The largest payload or result, in bytes.
    payload_limit: usize,
    /// The clock of the store.
    clock: Arc<dyn Clock>,
    /// True if a missing file is created.
    create: bool,
    /// True if a new file gets page checksums, and an existing one must have them.
    page_checksums: bool,
    /// The VFS below the layer; `None` for the system's.
    vfs: Option<String>,
    /// The number of pages at which a log is long.
    long_log: i32,
    /// The number of tasks that may wait in memory.
    memory_tasks: MemoryTasks,
    /// The scripts of the schema.
    migrations: Migrations,
    /// True for a process that makes a few calls and ends.
    brief: bool,
}

/// The limits of a brief process. It leaves at most this many tasks above the index watermark,
/// because the next process has to read them.
const BRIEF_TASKS: MemoryTasks = MemoryTasks { alone: 256, beside_tables: 256 };

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            payload_limit: bounds::PAYLOAD_BYTES,
            clock: Arc::new(SystemClock),
            create: true,
            page_checksums: false,
            vfs: None,
            long_log: checkpoint_trigger::LONG_LOG,
            memory_tasks: MemoryTasks::default(),
            migrations: MIGRATIONS,
            brief: false,
        }
    }
}

impl SqliteOptions {
    /// Sets what an acknowledgement means. Default: [`Durability::Full`]. With
    /// [`Durability::Memory`] a file is written, but never synced, and may be damaged by power
    /// loss.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the largest payload or result in bytes. Opening fails with more than
    /// [`bounds::PAYLOAD_BYTES_CEILING`], 256 MiB. Default: 1 MiB.
    #[must_use]
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.payload_limit = bytes;
        self
    }

    /// Sets the clock. Default: the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets if a missing file is created. Default: yes. A missing directory is never created.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Sets if a new file gets a checksum in each page, so that damage is an error and is never
    /// read as data. Default: no. An existing file stays as it is. One that was created with
    /// checksums needs no option, and one without gets none from this option (see
    /// [`rebuild`](SqliteStore::rebuild)).
    ///
    /// Only Onward may write to such a file. Another program, such as the `sqlite3` shell, does not
    /// maintain the checksums. Pages that it writes, or copies from the write-ahead log when it
    /// closes the file last, are rejected as damaged. It may read while a process of Onward has the
    /// store open, and at other times with `mode=ro`. In this process
    /// [`connect`](SqliteStore::connect) returns connections that may write.
    ///
    /// Cost: a page's checksum is computed when the page is copied from the log, and when it is
    /// read from the file; a few hundredths of all that is written. The checksum takes 8 bytes of
    /// each page of 4096.
    #[must_use]
    pub fn page_checksums(mut self, page_checksums: bool) -> Self {
        self.page_checksums = page_checksums;
        self
    }

    /// Sets the registered SQLite VFS through which the store's connections reach their files,
    /// below Onward's own layer. Default: the system's. It is for tests that inject faults between
    /// SQLite and the disk. Backups and migrations do not use it.
    #[doc(hidden)]
    #[must_use]
    pub fn vfs(mut self, name: &str) -> Self {
        self.vfs = Some(name.to_owned());
        self
    }

    /// Sets the number of pages at which the write-ahead log is copied back. Default: 8192. It is
    /// for tests that need this to happen often.
    #[doc(hidden)]
    #[must_use]
    pub fn long_log(mut self, pages: i32) -> Self {
        self.long_log = pages;
        self
    }

    /// Sets the number of tasks that may wait in memory before they move to the tables. Default:
    /// 131 072, and 16 384 beside tasks that are in the tables. It is for tests that need this to
    /// happen often.
    #[doc(hidden)]
    #[must_use]
    pub fn memory_tasks(mut self, tasks: usize) -> Self {
        self.memory_tasks = MemoryTasks { alone: tasks, beside_tables: tasks };
        self
    }

    /// Adds the scripts of a hypothetical later version. It is for tests of upgrades.
    #[doc(hidden)]
    #[must_use]
    pub fn added_migrations(mut self, scripts: &'static [&'static str]) -> Self {
        self.migrations = MIGRATIONS.and(scripts);
        self
    }

    /// Sets if this process makes a few calls and ends, as a command line does. Default: no. Such a
    /// store is cheaper to open and to close: it watches no file, has no housekeeping thread, and
    /// is not notified by other processes. Its [`changes`](crate::Store::changes) report only the
    /// writes of this process.
    #[must_use]
    pub fn brief(mut self, brief: bool) -> Self {
        self.brief = brief;
        if brief {
            self.memory_tasks = BRIEF_TASKS;
        }
        self
    }

    /// Opens a file, and creates or migrates it if necessary. Sessions of ended processes lapse at
    /// once.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) for a missing directory, or a missing file that must
    /// not be created; [`is_corrupt`](Error::is_corrupt) if the file is damaged or no store;
    /// [`is_version`](Error::is_version) if a newer version created it, or a development version
    /// from before 0.1; [`is_read_only`](Error::is_read_only), [`is_full`](Error::is_full),
    /// [`is_busy`](Error::is_transient); [`is_invalid`](Error::is_invalid) on a network file system
    /// or for an impossible payload limit. In every case the file is as it was.
    #[expect(clippy::unused_async, reason = "opening another kind of store waits, and callers should not care")]
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore> {
        let path = path.as_ref();
        self.open_file(path).map_err(|error| named(path, error))
    }

    /// Opens a new store in memory, with durability level [`Durability::Memory`].
    ///
    /// # Errors
    /// If there is not enough memory, or the payload limit is impossible.
    #[expect(clippy::unused_async, reason = "opening another kind of store waits, and callers should not care")]
    pub async fn open_in_memory(self) -> Result<SqliteStore> {
        check_payload_limit(self.payload_limit)?;
        let mut connection = Connection::open_in_memory_with_flags(CONNECT)?;
        prepare(&connection, Durability::Memory)?;
        migrate(&mut connection, self.migrations)?;
        let info = self.info("in memory".into(), Durability::Memory);
        let mut committer =
            self.committer(connection, None, watch::Sender::new(Hint::default()), NotificationSender::new());
        let sizes = Arc::clone(&committer.sizes);
        committer.adapt_to_peers()?;
        committer.connection.prepare_all()?;
        // Reads use this connection too. This call compiles the statement that every engine needs
        // first.
        reads::schedules::schedules(&committer.connection, &ScheduleSelection::All)?;
        let writer = Writer::start(Arc::new(Mutex::new(committer)), false)?;
        Ok(SqliteStore::new(writer, None, info, self.clock, sizes))
    }

    /// Returns the clock.
    pub(in crate::sqlite) fn clock_of(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Applies writes to a file that no other process has open, and returns a connection to it.
    #[cfg(feature = "postgres")]
    pub(in crate::sqlite) fn apply_alone(&self, path: &Path, writes: &[Write]) -> Result<Connection> {
        let connection = connect(path, None)?;
        prepare(&connection, Durability::Memory)?;
        let mut committer =
            self.committer(connection, None, watch::Sender::new(Hint::default()), NotificationSender::new());
        committer.adapt_to_peers()?;
        let outcomes = committer.in_transaction(|transaction| {
            let outcomes = transaction.write_all(writes)?;
            transaction.finish()?;
            Ok(outcomes)
        })?;
        for outcome in outcomes {
            if let Outcome::Refused(refusal) = outcome {
                return Err(Error::refused(refusal));
            }
        }
        drop(committer);
        let connection = connect(path, None)?;
        prepare(&connection, Durability::Full)?;
        Ok(connection)
    }

    /// Returns the description of a store at a location.
    fn info(&self, location: String, durability: Durability) -> StoreInfo {
        StoreInfo {
            backend: "sqlite",
            location,
            durability,
            schema: self.migrations.newest(),
            payload_limit: self.payload_limit,
        }
    }

    /// Returns the VFS below the layer.
    pub(super) fn vfs_name(&self) -> Option<&str> {
        self.vfs.as_deref()
    }

    /// Returns the scripts of the schema.
    pub(in crate::sqlite) fn migrations(&self) -> Migrations {
        self.migrations
    }

    /// Returns the description of a store in a file.
    pub(super) fn info_of(&self, path: &Path) -> StoreInfo {
        self.info(path.display().to_string(), self.durability)
    }

    /// Opens a store in a file: checks and migrates it, lets the sessions of ended processes lapse,
    /// and starts the threads.
    pub(super) fn open_file(self, path: &Path) -> Result<SqliteStore> {
        let path = real_path(path);
        let (mut committer, checkpoint_trigger) = self.enter_file(&path)?;
        let vfs = self.vfs.as_deref();
        if !self.brief {
            committer.adapt_to_peers()?;
        }
        committer.connection.prepare_all()?;
        let sizes = Arc::clone(&committer.sizes);
        let page_checksums = has_page_checksums(&committer.connection)?;
        let callers =
            CallerTransactions::new(&committer, path.clone(), page_checksums, Arc::clone(&checkpoint_trigger));
        let paths = committer.file.as_ref().map(|file| Arc::clone(file.paths()));
        let readers = ReadPool::new(path.clone(), vfs, paths);
        let committer = Arc::new(Mutex::new(committer));
        let housekeeping = if self.brief {
            None
        } else {
            let housekeeper = connect(&path, vfs)?;
            prepare(&housekeeper, self.durability)?;
            Some(housekeeping::start(housekeeper, Arc::clone(&checkpoint_trigger), Arc::clone(&committer))?)
        };
        let writer = Writer::start(committer, self.durability == Durability::Full)?;
        let info = self.info(path.display().to_string(), self.durability);
        let file = OpenFile { readers, checkpoint_trigger, housekeeping, callers };
        Ok(SqliteStore::new(writer, Some(file), info, self.clock, sizes))
    }

    /// Opens the writing connection, and creates this process's lock file. Changes nothing that
    /// other processes see of the tasks.
    fn enter_file(&self, path: &Path) -> Result<(Committer, Arc<CheckpointTrigger>)> {
        check_payload_limit(self.payload_limit)?;
        check_place(path, self.create)?;
        let mut connection = connect_first(path, self.vfs.as_deref())?;
        // Before any setting, because `prepare` may rewrite the header of the file. In one
        // transaction, because another process may be creating the store at this moment.
        let reading = connection.transaction()?;
        let schema = check_schema(&reading, self.migrations)?;
        drop(reading);
        self.reserve_checksums(&connection)?;
        set_synchronous(&connection, self.durability)?;
        // Before the write-ahead log exists, so that no file without an identity ever has a log.
        if schema < self.migrations.newest() {
            migrate(&mut connection, self.migrations)?;
        }
        prepare(&connection, self.durability)?;
        // Another process may have created the file in the meantime.
        self.check_checksums(&connection)?;
        let checkpoint_trigger = Arc::new(CheckpointTrigger::new(with_suffix(path, "-wal"), self.long_log));
        checkpoint_trigger.watch(&mut connection)?;
        let hints = watch::Sender::new(Hint::default());
        let notifications = NotificationSender::new();
        // Until it is certain that no other process has another file open at this path, whose log
        // this may be.
        set_leaves_log(&connection, true);
        let file = StoreFiles::opened(&connection, path)?;
        let inode = file.paths().inode();
        let peers = if self.brief {
            PeerProcesses::register_briefly(path, inode)?
        } else {
            PeerProcesses::register(
                path,
                inode,
                woken(hints.clone(), notifications.clone(), Arc::clone(&checkpoint_trigger)),
            )?
        };
        // Checked again: another process may have opened the earlier file at this path, and created
        // its lock file, since the first check.
        check_peers(path, Some(inode))?;
        set_leaves_log(&connection, false);
        let mut committer = self.committer(connection, Some(peers), hints, notifications);
        committer.file = Some(file);
        committer.checkpoint_trigger = Some(Arc::clone(&checkpoint_trigger));
        Ok((committer, checkpoint_trigger))
    }

    /// Reserves room for checksums. A file gets it with its first page, or never.
    fn reserve_checksums(&self, connection: &Connection) -> Result<()> {
        if self.page_checksums && is_empty(connection)? {
            return file_layer::reserve(connection, CHECKSUM_BYTES);
        }
        self.check_checksums(connection)
    }

    /// Rejects a file without page checksums if they were asked for.
    fn check_checksums(&self, connection: &Connection) -> Result<()> {
        if self.page_checksums && !has_page_checksums(connection)? {
            return Err(Error::invalid(
                "the file was made without checksums of its pages, and they were asked for; rebuild it with `onward store rebuild`",
            ));
        }
        Ok(())
    }

    /// Assembles a committer.
    fn committer(
        &self,
        connection: Connection,
        peers: Option<PeerProcesses>,
        hints: watch::Sender<Hint>,
        notifications: NotificationSender,
    ) -> Committer {
        Committer::new(CommitterParts {
            connection,
            clock: Arc::clone(&self.clock),
            payload_limit: self.payload_limit,
            memory_tasks: self.memory_tasks,
            peers,
            file: None,
            hints,
            notifications,
            sizes: Arc::default(),
        })
    }
}

/// Handles a wake-up. After a peer's write the engine checks for work, and the housekeeping thread
/// checks the peers. After a change of the file's name the housekeeping thread checks the file.
fn woken(
    hints: watch::Sender<Hint>,
    notifications: NotificationSender,
    checkpoint_trigger: Arc<CheckpointTrigger>,
) -> impl Fn(WakeReason) + Send + 'static {
    move |woken| {
        if matches!(woken, WakeReason::Peer | WakeReason::Peers) {
            hints.send_modify(|hint| hint.add(Hint::all()));
            notifications.notify_missed();
        }
        match woken {
            WakeReason::Peer => {}
            WakeReason::Peers | WakeReason::Announced | WakeReason::FileRenamed => checkpoint_trigger.fire(),
            WakeReason::FileWritten => checkpoint_trigger.fire_if_asleep(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::outcome::Outcome;
    use crate::api::store::Store as _;
    use crate::api::task::NewTask;
    use crate::api::write::{Claim, OpenSession, Write};

    /// A process starts after another one has listed its peers, and before that one acts on the
    /// list.
    #[tokio::test]
    async fn a_process_that_came_after_the_look_keeps_its_sessions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        let (mut slow, _trigger) = SqliteStore::options().enter_file(&path).unwrap();
        slow.update_peers(true).unwrap();
        let other = SqliteStore::open(&path).await.unwrap();
        let open = OpenSession::new("worker", Duration::from_secs(10));
        let submit = Write::Submit(Box::new(NewTask::new("mail").unwrap()));
        let opened = other.apply(vec![submit, Write::OpenSession(open)]).await.unwrap();
        let Outcome::SessionOpened(session) = opened[1] else { panic!("no session: {opened:?}") };
        let claim = Claim::any(session, 1);
        other.apply(vec![Write::Claim(claim)]).await.unwrap();
        slow.adapt_to_peers().unwrap();
        let outcomes = other.apply(vec![Write::Sweep, Write::RenewSession { session }]).await.unwrap();
        assert_eq!(outcomes[1], Outcome::Renewed { cancel: Vec::new() });
    }
}
