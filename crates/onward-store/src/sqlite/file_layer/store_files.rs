//! The files that an open store works on, and whether they are still the ones at their paths.
//!
//! SQLite finds a database by its path once, and works on the opened file for as long as it is
//! open. If the file is moved away in the meantime, SQLite continues to write there, while the next
//! process creates a new file at the path, and takes the write-ahead log for its own. So a store
//! looks, with the write lock held and again after the commit, whether its files are at their paths
//! and hold what it and its peers have written. No commit is acknowledged before the second look.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rustix::io::Errno;

use crate::api::error::{Error, Result};
use crate::clock::file_time;
use crate::sqlite::file_layer::identity::{Found, Identity};
use crate::sqlite::file_layer::log_owner::{LogOwner, Salts, with_suffix};
use crate::sqlite::processes::lock_wait::sleep;

/// A directory whose time is younger may change again without a change of its time.
const TICK: Duration = Duration::from_secs(1);

/// The number of reads of an identity that is not there, since another process may be writing its
/// page.
const READS: u32 = 10;

/// The pause between two reads of a page that another process may be writing.
const READ_PAUSE: Duration = Duration::from_millis(1);

/// The identity of a file, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    /// The device of the file.
    device: u64,
    /// The number of the file on its device.
    inode: u64,
}

/// The state of a directory: another one, if a name in it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DirectoryState {
    /// The directory itself, which may have been replaced as well.
    id: FileId,
    /// The time of the last change of a name in it.
    modified: Duration,
}

/// The way in which a store has lost its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Nothing is at the path.
    Moved,
    /// Another file is at the path.
    Replaced,
    /// The file holds something else.
    Overwritten,
    /// The write-ahead log or its index is gone, or another file.
    LogReplaced,
}

/// The fate of the changes of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum CommitOutcome {
    /// They were not written.
    NotWritten,
    /// They were committed to the files that the store has open.
    Unknown,
}

impl Loss {
    /// Returns the description of a loss.
    fn text(self) -> &'static str {
        match self {
            Self::Moved => "the store's file is no longer at this path: it was moved or removed while it was open",
            Self::Replaced => {
                "the store's file is no longer at this path: another file took its place while it was open"
            }
            Self::Overwritten => "the store's file was overwritten while it was open",
            Self::LogReplaced => "the store's -wal or -shm file was moved, removed or replaced while it was open",
        }
    }

    /// Returns the remedy for a loss.
    fn remedy(self) -> &'static str {
        match self {
            Self::Moved | Self::Replaced => {
                "end all processes of the store and put its file back beside its -wal, or move -wal and -shm away to begin without them"
            }
            Self::Overwritten => {
                "end all processes of the store, and move its -wal and -shm away before you start with what is there now; they belong to what \
                 was overwritten"
            }
            Self::LogReplaced => {
                "end all processes of the store, put the -wal file back if it was moved, and start again"
            }
        }
    }
}

/// The paths of the files, and the files that were found there. Shared with readers.
#[derive(Debug)]
pub(in crate::sqlite) struct FilePaths {
    /// The path of the database file.
    path: PathBuf,
    /// Its directory.
    directory: PathBuf,
    /// The files that must be at their paths, with their ids: database, log and shared memory.
    files: Vec<(PathBuf, FileId)>,
    /// The directory when all names were right, if a later change would show.
    settled: Mutex<Option<DirectoryState>>,
    /// Stays once it is set.
    lost: OnceLock<Loss>,
}

impl FilePaths {
    /// Records the files of a store with a log.
    fn new(path: &Path) -> Result<Self> {
        Self::of(path, vec![path.to_owned(), with_suffix(path, "-wal"), with_suffix(path, "-shm")])
    }

    /// Records the database file alone, for a process that only reads: it acknowledges nothing that
    /// a lost log would lose.
    pub(in crate::sqlite) fn of_database(path: &Path) -> Result<Self> {
        Self::of(path, vec![path.to_owned()])
    }

    /// Records the ids of files. A missing one is an error.
    fn of(path: &Path, files: Vec<PathBuf>) -> Result<Self> {
        let with_id = |path: PathBuf| match file_id(&path) {
            Ok(Some(id)) => Ok((path, id)),
            Ok(None) => Err(Loss::Moved.error(&path, CommitOutcome::NotWritten)),
            Err(failure) => Err(unreadable(&path, failure)),
        };
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(Self {
            path: path.to_owned(),
            directory,
            files: files.into_iter().map(with_id).collect::<Result<_>>()?,
            settled: Mutex::new(None),
            lost: OnceLock::new(),
        })
    }

    /// Returns the inode of the database file.
    pub(in crate::sqlite) fn inode(&self) -> u64 {
        self.files.first().map_or(0, |(_, id)| id.inode)
    }

    /// Returns an error if the store has lost its file. Cost: one read of the directory's time, if
    /// no name in it has changed.
    pub(in crate::sqlite) fn check(&self, outcome: CommitOutcome) -> Result<()> {
        if self.lost.get().is_none()
            && let Some(loss) = self.look()
        {
            self.lose(loss);
        }
        match self.lost.get() {
            Some(loss) => Err(loss.error(&self.path, outcome)),
            None => Ok(()),
        }
    }

    /// Records a loss. No commit is accepted from then on.
    fn lose(&self, loss: Loss) {
        // The first one found is the cause; what follows from it would mislead.
        let _ = self.lost.set(loss);
    }

    /// Checks that the files are at their paths. It costs one system call as long as no name in the
    /// directory changes.
    fn look(&self) -> Option<Loss> {
        let state = directory_state(&self.directory);
        let mut settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_some() && *settled == state {
            return None;
        }
        *settled = None;
        for (number, (path, id)) in self.files.iter().enumerate() {
            match file_id(path) {
                Ok(found) if found == Some(*id) => {}
                Ok(_) if number > 0 => return Some(Loss::LogReplaced),
                Ok(None) => return Some(Loss::Moved),
                Ok(Some(_)) => return Some(Loss::Replaced),
                // A file whose metadata cannot be read proves nothing.
                Err(_) => return None,
            }
        }
        // A change within the same tick of the clock would not show.
        *settled = state.filter(|state| state.modified.saturating_add(TICK) < file_time());
        None
    }
}

impl Loss {
    /// Returns the error for a loss.
    #[cold]
    fn error(self, path: &Path, outcome: CommitOutcome) -> Error {
        let outcome = match outcome {
            CommitOutcome::NotWritten => "nothing more is accepted",
            CommitOutcome::Unknown => {
                "the last changes were written to what was there before, and count only if that is put back"
            }
        };
        Error::replaced(format!("{}; {outcome}; {}", self.text(), self.remedy())).about(&path.display().to_string())
    }
}

/// The files of a store as the writer sees them.
#[derive(Debug)]
pub(in crate::sqlite) struct StoreFiles {
    /// The paths, shared with readers.
    paths: Arc<FilePaths>,
    /// As long as a page of the file.
    page: Vec<u8>,
    /// The identity that the file was seen to have last. `None` as long as the file has none: when
    /// the power failed in a checkpoint the page may be torn, and SQLite reads it from the log.
    seen: Option<Identity>,
    /// The identity that it had before the transaction under way.
    before: Option<Identity>,
    /// The number of the store.
    store: [u8; 16],
    /// The generation that this process has written last, or found to be enough.
    raised_to: i64,
    /// The open log, whose salts show if it has begun again.
    log: File,
    /// The record of the log's owner.
    owner: LogOwner,
    /// The log whose owner is recorded.
    recorded: Option<Salts>,
}

impl StoreFiles {
    /// Records the files that a connection has just opened.
    pub(in crate::sqlite) fn opened(connection: &Connection, path: &Path) -> Result<Self> {
        // SQLite opens the log, and makes it, with the first read.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        let paths = FilePaths::new(path)?;
        let log_path = with_suffix(path, "-wal");
        let log = File::open(&log_path).map_err(|error| unreadable(&log_path, error))?;
        let size: usize = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let mut page = vec![0; size];
        let store = connection.query_row("SELECT store FROM identity", [], |row| row.get(0))?;
        let seen = match Found::on_page(connection, &mut page) {
            Found::Identity(found) => Some(found),
            Found::Nothing | Found::Unknown => None,
        };
        Ok(Self {
            paths: Arc::new(paths),
            page,
            seen,
            before: seen,
            store,
            raised_to: i64::MIN,
            log,
            owner: LogOwner::beside(path),
            recorded: None,
        })
    }

    /// Returns the paths.
    pub(in crate::sqlite) fn paths(&self) -> &Arc<FilePaths> {
        &self.paths
    }

    /// Returns an error if the files are no longer at their paths or hold something else.
    pub(in crate::sqlite) fn check(&mut self, connection: &Connection, outcome: CommitOutcome) -> Result<()> {
        let checked = self.check_all(connection, outcome);
        if checked.is_err() {
            leave_log(connection);
        }
        checked
    }

    /// Checks the paths, and that the file has the identity that this process knows. A second read
    /// decides, because another process may be writing the page.
    fn check_all(&mut self, connection: &Connection, outcome: CommitOutcome) -> Result<()> {
        self.paths.check(outcome)?;
        match Found::on_page(connection, &mut self.page) {
            Found::Identity(found) if self.seen == Some(found) => return Ok(()),
            // A fault of the disk is no sign of another file; the next read of the page reports it.
            Found::Unknown => return Ok(()),
            Found::Nothing if self.seen.is_none() => return Ok(()),
            Found::Identity(_) | Found::Nothing => {}
        }
        match read_patiently(connection, &mut self.page) {
            Found::Identity(found) if self.goes_on_with(found) => self.seen = Some(found),
            Found::Unknown => {}
            Found::Identity(_) | Found::Nothing => self.paths.lose(Loss::Overwritten),
        }
        self.paths.check(outcome)
    }

    /// Returns true if a checkpoint can have given the file this identity.
    fn goes_on_with(&self, found: Identity) -> bool {
        found.store == self.store && self.seen.is_none_or(|seen| found.generation >= seen.generation)
    }

    /// Checks the file before a transaction, with the write lock held.
    pub(in crate::sqlite) fn check_before(&mut self, connection: &Connection) -> Result<()> {
        self.check(connection, CommitOutcome::NotWritten)?;
        self.before = self.seen;
        Ok(())
    }

    /// Returns true if a transaction that changes something must raise the generation: the last
    /// raised one is in the file already, so the next checkpoint would not change it.
    pub(in crate::sqlite) fn is_to_be_raised(&self) -> bool {
        self.seen.is_none_or(|seen| self.raised_to <= seen.generation)
    }

    /// Records the generation that a committed transaction has written.
    pub(in crate::sqlite) fn raised_to(&mut self, generation: i64) {
        self.raised_to = generation;
    }

    /// Records the file's identity for a log that the transaction under way may begin. Called
    /// before the commit, which gives the log its salts: a process that is killed after it has
    /// recorded nothing else.
    pub(in crate::sqlite) fn announce_log(&self) {
        let mut salts = Salts::default();
        // A log that was never written has no salts.
        let _ = self.log.read_exact_at(&mut salts.0, Salts::OFFSET);
        // A failure is ignored for the reason given in `record_log`.
        let _ = self.before.map(|before| self.owner.announce(salts, before));
    }

    /// Writes the record of the log's owner. Called after each commit and before it is
    /// acknowledged: no acknowledged change is in a log that could be taken for another file's.
    pub(in crate::sqlite) fn record_log(&mut self) {
        let mut salts = Salts::default();
        if self.log.read_exact_at(&mut salts.0, Salts::OFFSET).is_err() || self.recorded == Some(salts) {
            return;
        }
        // Without a record the log is taken as it is, as SQLite takes any; it is tried again with
        // the next commit. The first commit to a log decides: what a checkpoint has changed since
        // may not be on disk yet.
        let record = |before| self.owner.of(salts).is_some() || self.owner.record(salts, before).is_ok();
        if self.before.is_some_and(record) {
            self.recorded = Some(salts);
        }
    }
}

/// Makes a connection leave the log as it is when it is closed. The log belongs to the file that
/// was there before, and an operator who puts that file back finds the acknowledged changes in the
/// log.
pub(in crate::sqlite) fn leave_log(connection: &Connection) {
    set_leaves_log(connection, true);
}

/// Sets whether a connection leaves the log when it is the last one that is closed, or copies it
/// back, as SQLite does by default.
pub(in crate::sqlite) fn set_leaves_log(connection: &Connection, leaves: bool) {
    // It fails for no open connection.
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leaves);
}

/// Reads an identity, and again if it is not there: another process may be writing that page.
fn read_patiently(connection: &Connection, page: &mut [u8]) -> Found {
    for _ in 1..READS {
        match Found::on_page(connection, page) {
            Found::Nothing => sleep(READ_PAUSE),
            found => return found,
        }
    }
    Found::on_page(connection, page)
}

/// Returns the id of the file at a path; `None` if there is none.
fn file_id(path: &Path) -> std::result::Result<Option<FileId>, Errno> {
    match rustix::fs::stat(path) {
        Ok(found) => Ok(Some(FileId { device: found.st_dev, inode: found.st_ino })),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Returns the state of a directory.
fn directory_state(directory: &Path) -> Option<DirectoryState> {
    let found = std::fs::metadata(directory).ok()?;
    let seconds = Duration::from_secs(found.mtime().unsigned_abs());
    let nanoseconds = Duration::from_nanos(found.mtime_nsec().unsigned_abs());
    Some(DirectoryState {
        id: FileId { device: found.dev(), inode: found.ino() },
        modified: seconds.saturating_add(nanoseconds),
    })
}

/// The error for a file that cannot be examined.
#[cold]
fn unreadable(path: &Path, failure: impl Into<std::io::Error>) -> Error {
    let failure = failure.into();
    Error::io(format!("{} cannot be looked at: {failure}", path.display())).caused_by(failure)
}
