//! The files of an open store, and the check that they are still at their paths.
//!
//! SQLite finds a database by its path once, and then works on the opened file. If the file is
//! moved away, SQLite continues to write there, while the next process creates a new file at the
//! path and takes the write-ahead log for its own. So a store checks its files before each commit,
//! with the write lock held, and again after it. They must be at their paths and hold what the
//! store and its peers have written. A commit is acknowledged only after the second check.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rustix::io::Errno;

use crate::api::error::{Error, Result};
use crate::clock::file_time;
use crate::sqlite::file_layer::identity::{Identity, StoredIdentity};
use crate::sqlite::file_layer::log_owner::{LogOwner, Salts, with_suffix};
use crate::sqlite::processes::lock_wait::sleep;

/// The age up to which the time of a directory proves nothing: it may change again within the same
/// tick. The clock of file systems ticks at least a hundred times a second.
const TICK: Duration = Duration::from_millis(20);

/// The age on a file system that keeps whole seconds, or every second one, such as FAT.
const LONG_TICK: Duration = Duration::from_secs(2);

/// The time for which an unchanged directory proves that the files are at their paths. A directory
/// above it can be moved without a change of it. Its files move together then, so what is committed
/// within this time is beside what was committed before.
const RECHECK: Duration = Duration::from_millis(100);

/// The number of attempts to read an identity, because another process may be writing its page.
const READS: u32 = 10;

/// The pause between two reads of a page that another process may be writing.
const READ_PAUSE: Duration = Duration::from_millis(1);

/// The identity of a file for the system, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    /// The device of the file.
    device: u64,
    /// The number of the file on its device.
    inode: u64,
}

/// The state of a directory, which differs after a name in it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DirectoryState {
    /// The directory itself, which may be replaced as well.
    id: FileId,
    /// The time of the last change of a name in it, or of its own name.
    changed: Duration,
}

/// A check that found all files, and after which a change would show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Settled {
    /// The state of the directory, found by its path.
    state: DirectoryState,
    /// The time of the check.
    at: Duration,
}

/// The way in which a store has lost its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Nothing is at the path.
    Moved,
    /// Another file is at the path.
    Replaced,
    /// The file has other content.
    Overwritten,
    /// The write-ahead log or its index is missing or replaced.
    LogReplaced,
}

/// The outcome of the changes of a failed call.
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

/// The paths of the files, and the files that were found there. Readers share them.
#[derive(Debug)]
pub(in crate::sqlite) struct FilePaths {
    /// The path of the database file.
    path: PathBuf,
    /// Its directory.
    directory: PathBuf,
    /// The open directory, if this process may read it. Asking it for its state costs less than
    /// asking its path, whose every part is looked up.
    opened: Option<File>,
    /// The files that must be at their paths, each with its id: database, log and shared memory.
    files: Vec<(PathBuf, FileId)>,
    /// The last check that found all files, if a later change would show.
    settled: Mutex<Option<Settled>>,
    /// The loss, once one was found. It stays.
    lost: OnceLock<Loss>,
}

impl FilePaths {
    /// Records the files of a store with a log.
    fn new(path: &Path) -> Result<Self> {
        Self::of(path, vec![path.to_owned(), with_suffix(path, "-wal"), with_suffix(path, "-shm")])
    }

    /// Records the database file alone, for a process that only reads. It acknowledges no write
    /// that could be lost with the log.
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
            opened: File::open(&directory).ok(),
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

    /// Returns an error if the store has lost its file. Cost: one system call on an open file, if
    /// the files were found less than [`RECHECK`] ago and no name in the directory has changed.
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

    /// Records a loss. From then on no commit is accepted.
    fn lose(&self, loss: Loss) {
        // The first loss is the cause. Later ones follow from it.
        let _ = self.lost.set(loss);
    }

    /// Checks that the files are at their paths.
    fn look(&self) -> Option<Loss> {
        let now = file_time();
        let mut settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        if settled.is_some_and(|settled| self.is_still(settled, now)) {
            return None;
        }
        *settled = None;
        // The state is older than what is found below, so a change in between shows at the next
        // check.
        let state = std::fs::metadata(&self.directory).ok().map(|found| DirectoryState::of(&found));
        for (number, (path, id)) in self.files.iter().enumerate() {
            match file_id(path) {
                Ok(found) if found == Some(*id) => {}
                Ok(_) if number > 0 => return Some(Loss::LogReplaced),
                Ok(None) => return Some(Loss::Moved),
                Ok(Some(_)) => return Some(Loss::Replaced),
                // A file whose metadata cannot be read is no proof of a loss.
                Err(_) => return None,
            }
        }
        // A later change within the same tick of the clock would not show.
        let settles = state.filter(|state| state.is_past_tick(now));
        *settled = settles.map(|state| Settled { state, at: now });
        None
    }

    /// Returns true if a check need not be repeated: it is recent, and the directory is unchanged.
    fn is_still(&self, settled: Settled, now: Duration) -> bool {
        let is_recent = settled.at <= now && now - settled.at < RECHECK;
        let state = || self.opened.as_ref().and_then(|directory| directory.metadata().ok());
        is_recent && state().is_some_and(|found| DirectoryState::of(&found) == settled.state)
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
    /// A buffer as long as a page of the file.
    page: Vec<u8>,
    /// The last known identity of the file. `None` while the file has none: after a power failure
    /// in a checkpoint its page may be incomplete, and SQLite reads it from the log.
    seen: Option<Identity>,
    /// The identity of the file before the current transaction.
    before: Option<Identity>,
    /// The number of the store.
    store: [u8; 16],
    /// The last generation that this process has written, or found to be high enough.
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
        // SQLite opens or creates the log with the first read.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        let paths = FilePaths::new(path)?;
        let log_path = with_suffix(path, "-wal");
        let log = File::open(&log_path).map_err(|error| unreadable(&log_path, error))?;
        let size: usize = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let mut page = vec![0; size];
        let store = connection.query_row("SELECT store FROM identity", [], |row| row.get(0))?;
        let seen = match StoredIdentity::on_page(connection, &mut page) {
            StoredIdentity::Identity(found) => Some(found),
            StoredIdentity::Nothing | StoredIdentity::Unknown => None,
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

    /// Returns an error if the files are no longer at their paths or have other content.
    pub(in crate::sqlite) fn check(&mut self, connection: &Connection, outcome: CommitOutcome) -> Result<()> {
        let checked = self.check_all(connection, outcome);
        if checked.is_err() {
            leave_log(connection);
        }
        checked
    }

    /// Checks the paths, and that the file has the identity that this process knows. If not, a
    /// second read decides, because another process may be writing the page.
    fn check_all(&mut self, connection: &Connection, outcome: CommitOutcome) -> Result<()> {
        self.paths.check(outcome)?;
        match StoredIdentity::on_page(connection, &mut self.page) {
            StoredIdentity::Identity(found) if self.seen == Some(found) => return Ok(()),
            // A disk error is no sign of another file. The next read of the page reports it.
            StoredIdentity::Unknown => return Ok(()),
            StoredIdentity::Nothing if self.seen.is_none() => return Ok(()),
            StoredIdentity::Identity(_) | StoredIdentity::Nothing => {}
        }
        match read_patiently(connection, &mut self.page) {
            StoredIdentity::Identity(found) if self.goes_on_with(found) => self.seen = Some(found),
            StoredIdentity::Unknown => {}
            StoredIdentity::Identity(_) | StoredIdentity::Nothing => self.paths.lose(Loss::Overwritten),
        }
        self.paths.check(outcome)
    }

    /// Returns true if a checkpoint can have changed the file's identity to this one.
    fn goes_on_with(&self, found: Identity) -> bool {
        found.store == self.store && self.seen.is_none_or(|seen| found.generation >= seen.generation)
    }

    /// Checks the file before a transaction, with the write lock held.
    pub(in crate::sqlite) fn check_before(&mut self, connection: &Connection) -> Result<()> {
        self.check(connection, CommitOutcome::NotWritten)?;
        self.before = self.seen;
        Ok(())
    }

    /// Returns true if the next transaction with changes must raise the generation. It must if the
    /// last raised one is already in the file, since the next checkpoint would then leave the
    /// identity as it is.
    pub(in crate::sqlite) fn must_raise_generation(&self) -> bool {
        self.seen.is_none_or(|seen| self.raised_to <= seen.generation)
    }

    /// Records the generation that a committed transaction has written.
    pub(in crate::sqlite) fn raised_to(&mut self, generation: i64) {
        self.raised_to = generation;
    }

    /// Records the file's identity for a log that the current transaction may begin. Called before
    /// the commit that gives the log its salts: if the process is killed between the commit and
    /// [`record_log`](Self::record_log), this record is the only one.
    pub(in crate::sqlite) fn announce_log(&self) {
        let mut salts = Salts::default();
        // A log that was never written has no salts.
        let _ = self.log.read_exact_at(&mut salts.0, Salts::OFFSET);
        // A failure is ignored for the reason given in `record_log`.
        let _ = self.before.map(|before| self.owner.announce(salts, before));
    }

    /// Writes the record of the log's owner. Called after each commit and before its
    /// acknowledgement, so that no acknowledged change is in a log without an owner.
    pub(in crate::sqlite) fn record_log(&mut self) {
        let mut salts = Salts::default();
        if self.log.read_exact_at(&mut salts.0, Salts::OFFSET).is_err() || self.recorded == Some(salts) {
            return;
        }
        // A failure is ignored: a log without a record is accepted, and the next commit tries
        // again. An existing record stays: what a later checkpoint has changed may not be on disk
        // yet.
        let record = |before| self.owner.of(salts).is_some() || self.owner.record(salts, before).is_ok();
        if self.before.is_some_and(record) {
            self.recorded = Some(salts);
        }
    }
}

/// Makes a connection leave the log as it is when it is closed. The log belongs to the earlier
/// file. An operator who restores that file finds the acknowledged changes in the log.
pub(in crate::sqlite) fn leave_log(connection: &Connection) {
    set_leaves_log(connection, true);
}

/// Sets if a connection leaves the log when it is the last one to be closed. Otherwise it copies
/// the log into the database, as SQLite does by default.
pub(in crate::sqlite) fn set_leaves_log(connection: &Connection, leaves: bool) {
    // It cannot fail on an open connection.
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leaves);
}

/// Reads an identity, several times if it is missing, because another process may be writing its
/// page.
fn read_patiently(connection: &Connection, page: &mut [u8]) -> StoredIdentity {
    for _ in 1..READS {
        match StoredIdentity::on_page(connection, page) {
            StoredIdentity::Nothing => sleep(READ_PAUSE),
            found => return found,
        }
    }
    StoredIdentity::on_page(connection, page)
}

/// Returns the id of the file at a path; `None` if there is none.
fn file_id(path: &Path) -> std::result::Result<Option<FileId>, Errno> {
    match rustix::fs::stat(path) {
        Ok(found) => Ok(Some(FileId { device: found.st_dev, inode: found.st_ino })),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl DirectoryState {
    /// Reads the state from the metadata of a directory.
    fn of(found: &Metadata) -> Self {
        let seconds = Duration::from_secs(found.ctime().unsigned_abs());
        let nanoseconds = Duration::from_nanos(found.ctime_nsec().unsigned_abs());
        Self { id: FileId { device: found.dev(), inode: found.ino() }, changed: seconds.saturating_add(nanoseconds) }
    }

    /// Returns true if a change after `now` has another time than the last one.
    fn is_past_tick(&self, now: Duration) -> bool {
        let tick = if self.changed.subsec_nanos() == 0 { LONG_TICK } else { TICK };
        self.changed.saturating_add(tick) < now
    }
}

/// The error for a file that cannot be examined.
#[cold]
fn unreadable(path: &Path, failure: impl Into<std::io::Error>) -> Error {
    let failure = failure.into();
    Error::io(format!("{} cannot be looked at: {failure}", path.display())).caused_by(failure)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns a file in a directory of a directory, with its paths, which a check has found.
    fn found() -> (tempfile::TempDir, PathBuf, FilePaths) {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("above").join("directory");
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join("onward.db");
        fs::write(&file, "x").unwrap();
        let paths = FilePaths::of_database(&file).unwrap();
        let state = DirectoryState::of(&fs::metadata(&directory).unwrap());
        *paths.settled.lock().unwrap() = Some(Settled { state, at: file_time() });
        pass_tick(root.path(), state.changed);
        (root, directory, paths)
    }

    /// Returns when the file system's clock, which ticks every few milliseconds, has passed a time.
    fn pass_tick(root: &Path, time: Duration) {
        let probe = root.join("probe");
        let now = || {
            fs::write(&probe, "x").unwrap();
            DirectoryState::of(&fs::metadata(&probe).unwrap()).changed
        };
        while now() <= time {}
    }

    #[test]
    fn a_recent_check_of_an_unchanged_directory_is_not_repeated() {
        let (_root, _, paths) = found();
        let settled = paths.settled.lock().unwrap().unwrap();
        assert!(paths.is_still(settled, settled.at + RECHECK / 2));
        assert!(!paths.is_still(settled, settled.at + RECHECK));
        assert!(!paths.is_still(settled, settled.at - RECHECK), "the clock was set back");
    }

    #[test]
    fn a_directory_without_fractions_of_a_second_settles_later() {
        let changed = |time| DirectoryState { id: FileId { device: 1, inode: 1 }, changed: time };
        let (whole, fraction) = (Duration::from_secs(100), Duration::from_millis(100_500));
        assert!(
            changed(fraction).is_past_tick(fraction + TICK * 2) && !changed(fraction).is_past_tick(fraction + TICK)
        );
        assert!(!changed(whole).is_past_tick(whole + LONG_TICK) && changed(whole).is_past_tick(whole + LONG_TICK * 2));
    }

    #[test]
    fn a_file_that_is_moved_is_missed_at_once() {
        let (_root, directory, paths) = found();
        fs::rename(directory.join("onward.db"), directory.join("moved.db")).unwrap();
        assert_eq!(paths.look(), Some(Loss::Moved));
    }

    #[test]
    fn a_directory_that_is_moved_is_missed_at_once() {
        let (root, directory, paths) = found();
        fs::rename(directory, root.path().join("moved")).unwrap();
        assert_eq!(paths.look(), Some(Loss::Moved));
    }

    #[test]
    fn a_directory_above_that_is_moved_is_missed_after_a_while() {
        let (root, _, paths) = found();
        fs::rename(root.path().join("above"), root.path().join("moved")).unwrap();
        if let Some(settled) = &mut *paths.settled.lock().unwrap() {
            settled.at -= RECHECK;
        }
        assert_eq!(paths.look(), Some(Loss::Moved));
    }
}
