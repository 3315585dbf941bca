//! The write lock of a store's file as other processes see it: its holder, and the progress of
//! commits.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::ErrorCode;

use crate::api::error::Error;
use crate::sqlite::file_layer::log_owner::with_suffix;

/// The byte of the `-shm` file that a writer locks (SQLite's WAL format, section 2.3.1).
const WRITE_LOCK: u64 = 120;

/// A process that holds the write lock of a store, of Onward or of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockHolder {
    /// The number of the process.
    pub process: u32,
    /// The name of its program, if the system provides it.
    pub program: Option<String>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process)?;
        self.program.as_ref().map_or(Ok(()), |program| write!(f, " ({program})"))
    }
}

/// The state of the write-ahead log, which every commit changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct Progress(Option<(SystemTime, u64)>);

/// The write lock of one file.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct WriteLock {
    /// The log, whose changes are progress.
    log: PathBuf,
    /// The shared memory, on which SQLite locks.
    index: PathBuf,
}

impl WriteLock {
    /// Returns the write lock of a store's file.
    pub(in crate::sqlite) fn of(store: &Path) -> Self {
        Self { log: with_suffix(store, "-wal"), index: with_suffix(store, "-shm") }
    }

    /// Returns the state of the log. It differs from an earlier state if a process has written
    /// since.
    pub(in crate::sqlite) fn progress(&self) -> Progress {
        let log = fs::metadata(&self.log).ok();
        Progress(log.and_then(|log| Some((log.modified().ok()?, log.len()))))
    }

    /// Returns the process that holds the lock. `None` if none does, or if the system does not
    /// report it. Opens no file of the store, because closing it would end SQLite's locks of this
    /// process.
    #[cfg(target_os = "linux")]
    pub(in crate::sqlite) fn holder(&self) -> Option<LockHolder> {
        use std::os::unix::fs::MetadataExt as _;
        let inode = fs::metadata(&self.index).ok()?.ino();
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let process = locks.lines().find_map(|line| holder_in(line, inode))?;
        let program = fs::read_to_string(format!("/proc/{process}/comm")).ok();
        Some(LockHolder { process, program: program.map(|name| name.trim().to_owned()) })
    }

    /// Returns the holder of the lock, which only Linux reports.
    #[cfg(not(target_os = "linux"))]
    pub(in crate::sqlite) fn holder(&self) -> Option<LockHolder> {
        let _ = &self.index;
        None
    }

    /// Converts the error of a transaction that waited for the lock without success; the error
    /// names the holder.
    pub(in crate::sqlite) fn name_holder(&self, failure: rusqlite::Error) -> Error {
        match failure.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy) => self.busy().caused_by(failure),
            _ => failure.into(),
        }
    }

    /// Returns the error for a lock that its holder does not release.
    #[cold]
    pub(in crate::sqlite) fn busy(&self) -> Error {
        let holder = self.holder().map_or_else(|| "another process".to_owned(), |holder| holder.to_string());
        Error::busy(format!(
            "{holder} has kept the store locked for 30 s; nothing was changed; wait for it or end it, and try again (onward doctor names it)"
        ))
    }
}

/// Reads the holder of the write lock from a line of `/proc/locks`, such as
/// `1: POSIX  ADVISORY  WRITE 4242 fd:00:131 120 120`.
#[cfg(target_os = "linux")]
fn holder_in(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    // The line of a process that waits for a lock has an arrow here.
    if words.next()? != "POSIX" {
        return None;
    }
    let is_to_write = words.nth(1)? == "WRITE";
    let process = words.next()?.parse().ok()?;
    let of_file = words.next()?.rsplit(':').next()?.parse() == Ok(inode);
    let first: u64 = words.next()?.parse().ok()?;
    let last = words.next()?.parse().unwrap_or(u64::MAX);
    (is_to_write && of_file && (first..=last).contains(&WRITE_LOCK)).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_line_of_the_systems_locks_names_the_holder_of_the_write_lock_alone() {
        let read = |line| holder_in(line, 131);
        assert_eq!(read("1: POSIX  ADVISORY  WRITE 4242 fd:00:131 120 120"), Some(4242));
        assert_eq!(read("1: POSIX  ADVISORY  WRITE 4242 fd:00:131 120 EOF"), Some(4242));
        assert_eq!(read("1: POSIX  ADVISORY  READ 4242 fd:00:131 120 120"), None);
        assert_eq!(read("1: POSIX  ADVISORY  WRITE 4242 fd:00:132 120 120"), None);
        assert_eq!(read("1: POSIX  ADVISORY  WRITE 4242 fd:00:131 123 123"), None);
        assert_eq!(read("1: -> POSIX  ADVISORY  WRITE 4242 fd:00:131 120 120"), None);
    }

    #[test]
    fn a_lock_that_is_free_has_no_holder() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(WriteLock::of(&directory.path().join("onward.db")).holder(), None);
    }
}
