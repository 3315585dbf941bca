//! Opens a store: the options, the checks before anything is changed, and the assembly of the
//! parts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::Access;
use rustix::io::Errno;
use tokio::sync::watch;

use crate::api::error::{Error, Result};
use crate::api::news::NewsSender;
#[cfg(feature = "postgres")]
use crate::api::outcome::Outcome;
use crate::api::schedule::ScheduleSelection;
use crate::api::store::{Durability, Hint, StoreInfo};
#[cfg(feature = "postgres")]
use crate::api::write::Write;
use crate::bounds;
use crate::clock::{Clock, SystemClock};
use crate::migrations::Migrations;
use crate::sqlite::commit::committer::{Committer, CommitterParts};
use crate::sqlite::commit::writer::Writer;
use crate::sqlite::file_layer::log_owner::{check_log, check_names, with_suffix};
use crate::sqlite::file_layer::store_files::{StoreFiles, set_leaves_log};
use crate::sqlite::file_layer::{self, CHECKSUM_BYTES};
use crate::sqlite::migrations::migrate::{MIGRATIONS, check_schema, migrate};
use crate::sqlite::processes::checkpoint_trigger::{self, CheckpointTrigger};
use crate::sqlite::processes::housekeeping;
use crate::sqlite::processes::lock_wait::wait_for_locks;
use crate::sqlite::processes::peers::{PeerProcesses, Woken, check_peers};
use crate::sqlite::reads;
use crate::sqlite::ready::index::MemoryTasks;
use crate::sqlite::store::caller_transaction::CallerTransactions;
use crate::sqlite::store::read_pool::ReadPool;
use crate::sqlite::store::sqlite_store::{OpenFile, SqliteStore};

/// The time for which other processes are waited for where SQLite itself does not wait.
const BUSY: Duration = Duration::from_secs(30);

/// The pause between two tries where SQLite itself does not wait.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Each connection is used by one thread at a time, which Rust enforces, so SQLite need not.
const CONNECT: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_CREATE).union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// The most symbolic links that are followed; the system follows as many.
const LINKS: usize = 40;

/// The number of prepared statements that the writing connection keeps in rusqlite's cache. A store
/// in memory also reads through it.
const STATEMENTS: usize = 384;

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
    durability: Durability,
    payload_limit: usize,
    clock: Arc<dyn Clock>,
    create: bool,
    page_checksums: bool,
    vfs: Option<String>,
    long_log: i32,
    memory_tasks: MemoryTasks,
    migrations: Migrations,
    brief: bool,
}

/// The tasks that a brief process leaves for the next one to read before it moves them to the
/// tables.
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

    /// Sets the largest payload or result in bytes, up to 256 MiB. Default: 1 MiB.
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

    /// Sets whether a missing file is created. Default: yes. Its directory never is.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Sets whether a new file gets a checksum in each of its pages, so that damage is an error and
    /// is never read as data. Default: no. An existing file keeps what it has: one that was created
    /// with checksums needs no option, and one without gets none from this option (see
    /// [`rebuild`](SqliteStore::rebuild)).
    ///
    /// Only Onward may write to such a file. Another program (the `sqlite3` shell, a library of
    /// another language) does not maintain the checksums. Pages that it writes, or copies back from
    /// the write-ahead log when it closes the file as the last, are then rejected as damaged. It
    /// may read while a process of Onward has the store open, and at other times with `mode=ro`. In
    /// this process [`connect`](SqliteStore::connect) returns connections that may write.
    ///
    /// Cost: the checksum of a page is computed once when the page is copied back from the log, and
    /// once when it is read from the file; a few hundredths of all that is written. The checksum
    /// takes 8 bytes of each page of 4096.
    #[must_use]
    pub fn page_checksums(mut self, page_checksums: bool) -> Self {
        self.page_checksums = page_checksums;
        self
    }

    /// Sets the registered SQLite VFS through which the store's connections reach their files,
    /// below Onward's own layer. Default: the system's. It is for tests that put themselves between
    /// SQLite and the disk; backups and migrations do not go through it.
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

    /// Adds the scripts of a made-up later version behind those of this one. It is for tests of
    /// upgrades.
    #[doc(hidden)]
    #[must_use]
    pub fn added_migrations(mut self, scripts: &'static [&'static str]) -> Self {
        self.migrations = MIGRATIONS.and(scripts);
        self
    }

    /// Sets whether this process makes a few calls and ends, as a command line does. Default: no.
    /// Such a store costs less to open and to close: it watches no file, has no housekeeping
    /// thread, and other processes ignore it. Its [`changes`](crate::Store::changes) report what
    /// this process writes, and not what other processes write.
    #[must_use]
    pub fn brief(mut self, brief: bool) -> Self {
        self.brief = brief;
        if brief {
            self.memory_tasks = BRIEF_TASKS;
        }
        self
    }

    /// Opens a file, which is created or migrated where needed. Sessions of processes that have
    /// ended lapse at once.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) for a missing directory, or a missing file that is not
    /// to be created; [`is_corrupt`](Error::is_corrupt) if the file is damaged or no store;
    /// [`is_version`](Error::is_version) if a newer version made it, or a development version from
    /// before 0.1; [`is_read_only`](Error::is_read_only), [`is_full`](Error::is_full),
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
    /// If there is no memory, or the payload limit is impossible.
    #[expect(clippy::unused_async, reason = "opening another kind of store waits, and callers should not care")]
    pub async fn open_in_memory(self) -> Result<SqliteStore> {
        self.check()?;
        let mut connection = Connection::open_in_memory_with_flags(CONNECT)?;
        prepare(&connection, Durability::Memory)?;
        migrate(&mut connection, self.migrations)?;
        let info = self.info("in memory".into(), Durability::Memory);
        let mut committer = self.committer(connection, None, watch::Sender::new(Hint::default()), NewsSender::new());
        let sizes = Arc::clone(&committer.sizes);
        committer.adapt_to_peers()?;
        committer.connection.prepare_all()?;
        // Reads use this connection too: this call compiles the statement that every engine needs
        // first.
        reads::schedules::schedules(&committer.connection, &ScheduleSelection::All)?;
        let writer = Writer::start(Arc::new(Mutex::new(committer)), false)?;
        Ok(SqliteStore::new(writer, None, info, self.clock, sizes))
    }

    pub(in crate::sqlite) fn clock_of(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Applies writes to a file that no other process has open, and returns a connection to it.
    #[cfg(feature = "postgres")]
    pub(in crate::sqlite) fn apply_alone(&self, path: &Path, writes: &[Write]) -> Result<Connection> {
        let connection = connect(path, None)?;
        prepare(&connection, Durability::Memory)?;
        let mut committer = self.committer(connection, None, watch::Sender::new(Hint::default()), NewsSender::new());
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

    fn check(&self) -> Result<()> {
        if self.payload_limit > bounds::PAYLOAD_BYTES_CEILING {
            return Err(Error::invalid(format!(
                "a payload limit of {} bytes was asked for; a store takes at most {}",
                self.payload_limit,
                bounds::PAYLOAD_BYTES_CEILING
            )));
        }
        Ok(())
    }

    fn info(&self, location: String, durability: Durability) -> StoreInfo {
        StoreInfo {
            backend: "sqlite",
            location,
            durability,
            schema: self.migrations.newest(),
            payload_limit: self.payload_limit,
        }
    }

    pub(super) fn vfs_name(&self) -> Option<&str> {
        self.vfs.as_deref()
    }

    pub(in crate::sqlite) fn migrations(&self) -> Migrations {
        self.migrations
    }

    pub(super) fn info_of(&self, path: &Path) -> StoreInfo {
        self.info(path.display().to_string(), self.durability)
    }

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

    /// Opens the writing connection and makes this process's mark. The work of other processes is
    /// not touched yet.
    fn enter_file(&self, path: &Path) -> Result<(Committer, Arc<CheckpointTrigger>)> {
        self.check()?;
        check_place(path, self.create)?;
        let mut connection = connect_first(path, self.vfs.as_deref())?;
        // Runs before anything is set, because `prepare` may rewrite the header of the file. One
        // transaction, because another process may be creating the store at this moment.
        let reading = connection.transaction()?;
        let schema = check_schema(&reading, self.migrations)?;
        drop(reading);
        self.reserve_checksums(&connection)?;
        set_synchronous(&connection, self.durability)?;
        // Runs before there is a write-ahead log, so that no file without an identity ever has a
        // log beside it.
        if schema < self.migrations.newest() {
            migrate(&mut connection, self.migrations)?;
        }
        prepare(&connection, self.durability)?;
        // Another process may have created the file in the meantime.
        self.check_checksums(&connection)?;
        let checkpoint_trigger = Arc::new(CheckpointTrigger::new(with_suffix(path, "-wal"), self.long_log));
        checkpoint_trigger.watch(&mut connection)?;
        let hints = watch::Sender::new(Hint::default());
        let news = NewsSender::new();
        // Lasts until it is certain that no other process has another file open here, to which this
        // log may belong.
        set_leaves_log(&connection, true);
        let file = StoreFiles::opened(&connection, path)?;
        let inode = file.paths().inode();
        let peers = if self.brief {
            PeerProcesses::register_briefly(path, inode)?
        } else {
            PeerProcesses::register(path, inode, woken(hints.clone(), news.clone(), Arc::clone(&checkpoint_trigger)))?
        };
        // Another process may have opened what was here before, and made its mark, since the first
        // check.
        check_peers(path, Some(inode))?;
        set_leaves_log(&connection, false);
        let mut committer = self.committer(connection, Some(peers), hints, news);
        committer.file = Some(file);
        committer.checkpoint_trigger = Some(Arc::clone(&checkpoint_trigger));
        Ok((committer, checkpoint_trigger))
    }

    /// Reserves room for checksums: a file gets them with its first page, or never.
    fn reserve_checksums(&self, connection: &Connection) -> Result<()> {
        if self.page_checksums && is_empty(connection)? {
            return file_layer::reserve(connection, CHECKSUM_BYTES);
        }
        self.check_checksums(connection)
    }

    fn check_checksums(&self, connection: &Connection) -> Result<()> {
        if self.page_checksums && !has_page_checksums(connection)? {
            return Err(Error::invalid(
                "the file was made without checksums of its pages, and they were asked for; write it anew with `onward store rebuild`",
            ));
        }
        Ok(())
    }

    fn committer(
        &self,
        connection: Connection,
        peers: Option<PeerProcesses>,
        hints: watch::Sender<Hint>,
        news: NewsSender,
    ) -> Committer {
        Committer::new(CommitterParts {
            connection,
            clock: Arc::clone(&self.clock),
            payload_limit: self.payload_limit,
            memory_tasks: self.memory_tasks,
            peers,
            file: None,
            hints,
            news,
            sizes: Arc::default(),
        })
    }
}

/// Handles a wake-up of the store. After a peer's write the engine looks for work, and the
/// housekeeping looks at the peers if there are any. After a change of the file's name the
/// housekeeping looks at the file.
fn woken(
    hints: watch::Sender<Hint>,
    news: NewsSender,
    checkpoint_trigger: Arc<CheckpointTrigger>,
) -> impl Fn(Woken) + Send + 'static {
    move |woken| {
        if matches!(woken, Woken::Peer | Woken::Peers) {
            hints.send_modify(|hint| hint.add(Hint { work: 1, transitions: 1, schedules: 1 }));
            news.tell_missed();
        }
        match woken {
            Woken::Peer => {}
            Woken::Peers | Woken::Announced | Woken::FileRenamed => checkpoint_trigger.fire(),
            Woken::FileWritten => checkpoint_trigger.fire_if_asleep(),
        }
    }
}

/// Opens a connection without changing the file, through our layer on top of this VFS.
pub(in crate::sqlite) fn connect(path: &Path, vfs: Option<&str>) -> Result<Connection> {
    let mut connection = open_through(path, CONNECT, &file_layer::over(vfs)?)?;
    wait_for_locks(&mut connection, path)?;
    Ok(connection)
}

/// Opens the first connection to a file that may not be a store, may not exist, and may have been
/// replaced under its users.
pub(in crate::sqlite) fn connect_first(path: &Path, vfs: Option<&str>) -> Result<Connection> {
    let path = real_path(path);
    check_before_open(&path)?;
    let connection = connect(&path, vfs)?;
    check_log(&connection, &path)?;
    Ok(connection)
}

/// Rejects a path where a file must not be opened or created, because another file is in use under
/// that name or has left its log there.
pub(in crate::sqlite) fn check_before_open(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    check_peers(path, std::fs::metadata(path).ok().map(|found| found.ino()))?;
    check_names(path)
}

/// Returns the path that SQLite would give the file, and its log its name from: without symbolic
/// links, also where the file is missing.
pub(in crate::sqlite) fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if let Ok(found) = std::fs::canonicalize(&path) {
            return found;
        }
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        match std::fs::read_link(&path) {
            Ok(target) => path = directory.join(target),
            Err(_) => {
                let directory = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
                return path.file_name().map_or_else(|| path.clone(), |name| directory.join(name));
            }
        }
    }
    path
}

/// Opens a connection through one of our VFS layers, by its name.
pub(super) fn open_through(path: &Path, flags: OpenFlags, layer: &str) -> Result<Connection> {
    file_layer::register()?;
    Ok(Connection::open_with_flags_and_vfs(path, flags, layer)?)
}

/// Returns true if a file has no page yet.
fn is_empty(connection: &Connection) -> Result<bool> {
    Ok(connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))? == 0)
}

/// Returns true if the pages of a file have room for checksums.
pub(super) fn has_page_checksums(connection: &Connection) -> Result<bool> {
    Ok(file_layer::reserved(connection)? == CHECKSUM_BYTES)
}

/// Sets the pragmas of every connection, and reads back those that decide about durability.
pub(in crate::sqlite) fn prepare(connection: &Connection, durability: Durability) -> Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    rusqlite::vtab::array::load_module(connection)?;
    // Without the query planner's stability guarantee, a statement may be planned again at every
    // new value bound to it.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let in_file = connection.path().is_some_and(|path| !path.is_empty());
    if in_file {
        let mode: String = patiently(|| connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)))?;
        if mode != "wal" {
            return Err(Error::io(format!(
                "the file system of the store does not allow a write-ahead log (the journal mode is {mode}); use a local disk"
            )));
        }
    }
    set_synchronous(connection, durability)?;
    // In KiB. A larger cache does not help a writer that appends, and SQLite walks all of it after
    // a commit that moved pages.
    connection.pragma_update(None, "cache_size", -8_192)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

fn set_synchronous(connection: &Connection, durability: Durability) -> Result<()> {
    let (synchronous, expected) = match durability {
        Durability::Full => ("FULL", 2),
        Durability::Normal => ("NORMAL", 1),
        Durability::Memory => ("OFF", 0),
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    let set: i64 = connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
    if set != expected {
        return Err(Error::io(format!("SQLite did not accept `synchronous = {synchronous}`")));
    }
    Ok(())
}

/// Retries while other processes are in the way. Where processes create one store at the same
/// moment, each needs the file for itself to change its journal mode. SQLite does not wait for
/// that, because they could wait for each other.
fn patiently<T>(mut work: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let mut waited = Duration::ZERO;
    loop {
        match work() {
            Err(failure) if failure.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && waited < BUSY => {
                std::thread::park_timeout(BUSY_PAUSE);
                waited += BUSY_PAUSE;
            }
            outcome => return outcome,
        }
    }
}

/// Rejects a path that would fail later or, worse, would not.
pub(in crate::sqlite) fn check_place(path: &Path, create: bool) -> Result<()> {
    check_there(path, create)?;
    check_writable(path, directory_of(path))
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Rejects a path where no store can be, or none is.
pub(super) fn check_there(path: &Path, create: bool) -> Result<()> {
    let directory = directory_of(path);
    if !directory.is_dir() {
        return Err(Error::not_found(format!("the directory {} does not exist; make it first", directory.display())));
    }
    if path.is_dir() {
        return Err(Error::invalid("a directory cannot be a store; name a file in it, such as onward.db"));
    }
    if !create && !path.exists() {
        return Err(Error::not_found(
            "there is no store; commands that add or set something make one, such as `onward submit`",
        ));
    }
    if let Some(kind) = network_file_system(directory) {
        return Err(Error::invalid(format!(
            "the directory is on {kind}, whose locks cannot be relied on; keep the store on a local disk"
        )));
    }
    Ok(())
}

/// Rejects a file or directory that cannot be written. SQLite would open a write-protected file for
/// reading, and on a read-only file system it would report a missing file.
fn check_writable(path: &Path, directory: &Path) -> Result<()> {
    for place in [directory, path] {
        match rustix::fs::access(place, Access::WRITE_OK) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(failure @ (Errno::ROFS | Errno::ACCESS | Errno::PERM)) => {
                let message = format!("{} may not be written; check the permissions", place.display());
                return Err(Error::read_only(message).caused_by(std::io::Error::from(failure)));
            }
            Err(failure) => return Err(Error::io(format!("{} cannot be used: {failure}", place.display()))),
        }
    }
    Ok(())
}

/// Returns the network file system on which a directory lies, by the magic numbers of Linux's
/// statfs(2).
#[cfg(target_os = "linux")]
fn network_file_system(directory: &Path) -> Option<&'static str> {
    match rustix::fs::statfs(directory).ok()?.f_type as u64 & 0xffff_ffff {
        0x6969 => Some("NFS"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Some("SMB"),
        0x0102_1997 => Some("9P"),
        0x00c3_6400 => Some("Ceph"),
        0x5346_414f => Some("AFS"),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn network_file_system(_directory: &Path) -> Option<&'static str> {
    None
}

pub(in crate::sqlite) fn named(path: &Path, error: Error) -> Error {
    error.about(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::outcome::Outcome;
    use crate::api::store::Store as _;
    use crate::api::task::NewTask;
    use crate::api::write::{Claim, OpenSession, Write};

    fn busy() -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None)
    }

    #[test]
    fn what_is_in_the_way_of_a_new_journal_is_waited_for() {
        let mut busy_for = 3;
        let outcome = patiently(|| {
            busy_for -= 1;
            if busy_for > 0 { Err(busy()) } else { Ok("wal") }
        });
        assert_eq!(outcome.unwrap(), "wal");
    }

    /// Regression: a process looks at its peers, and before it can act on the result another
    /// process comes and begins to work.
    #[tokio::test]
    async fn a_process_that_came_after_the_look_keeps_its_sessions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        let (mut slow, _bell) = SqliteStore::options().enter_file(&path).unwrap();
        slow.settle_peers(true).unwrap();
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
