//! Connections to a store's file, and the checks of its path before the file is changed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::Access;
use rustix::io::Errno;

use crate::api::error::{Error, Result};
use crate::api::store::Durability;
use crate::sqlite::file_layer::log_owner::{check_log, check_names, forget_other_store};
use crate::sqlite::file_layer::{self, CHECKSUM_BYTES};
use crate::sqlite::processes::lock_wait::wait_for_locks;
use crate::sqlite::processes::peers::check_peers;

/// The longest wait for other processes, for operations in which SQLite itself does not wait.
const BUSY: Duration = Duration::from_secs(30);

/// The pause between two attempts of such an operation.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// The flags of a connection. Rust ensures that one thread at a time uses it, so SQLite need not
/// lock.
pub(super) const CONNECT: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_CREATE).union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// The most symbolic links that are followed, which is the system's own limit.
const LINKS: usize = 40;

/// The number of prepared statements that the writing connection caches. Its writes need fewer; a
/// store in memory also reads with this connection.
const STATEMENTS: usize = 384;

/// Opens a connection through our layer on top of this VFS. Does not change the file.
pub(in crate::sqlite) fn connect(path: &Path, vfs: Option<&str>) -> Result<Connection> {
    let mut connection = open_through(path, CONNECT, &file_layer::over(vfs)?)?;
    wait_for_locks(&mut connection, path)?;
    Ok(connection)
}

/// Opens the first connection to a file. The file need not exist or be a store, and may have been
/// replaced while processes had it open.
pub(in crate::sqlite) fn connect_first(path: &Path, vfs: Option<&str>) -> Result<Connection> {
    let path = real_path(path);
    check_before_open(&path)?;
    let connection = connect(&path, vfs)?;
    check_log(&connection, &path)?;
    forget_other_store(&connection, &path);
    Ok(connection)
}

/// Rejects a path if another file is in use under its name, or has left its log there.
pub(in crate::sqlite) fn check_before_open(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    check_peers(path, std::fs::metadata(path).ok().map(|found| found.ino()))?;
    check_names(path)
}

/// Returns the path without symbolic links, also for a missing file. SQLite derives the name of the
/// log from it.
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

/// Opens a connection through the layer of this name.
pub(super) fn open_through(path: &Path, flags: OpenFlags, layer: &str) -> Result<Connection> {
    file_layer::register()?;
    Ok(Connection::open_with_flags_and_vfs(path, flags, layer)?)
}

/// Returns true if a file has no page yet.
pub(super) fn is_empty(connection: &Connection) -> Result<bool> {
    Ok(connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))? == 0)
}

/// Returns true if the pages of a file have room for checksums.
pub(super) fn has_page_checksums(connection: &Connection) -> Result<bool> {
    Ok(file_layer::reserved(connection)? == CHECKSUM_BYTES)
}

/// Applies the settings of every connection, and reads back those that decide about durability.
pub(in crate::sqlite) fn prepare(connection: &Connection, durability: Durability) -> Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    rusqlite::vtab::array::load_module(connection)?;
    // Without this setting, SQLite may plan a statement again for each new bound value.
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

/// Sets how commits are synced, and checks that SQLite has accepted it.
pub(super) fn set_synchronous(connection: &Connection, durability: Durability) -> Result<()> {
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

/// Retries while other processes prevent an operation. Processes that create one store at the same
/// time need exclusive access to change the journal, and SQLite does not wait for that.
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

/// Rejects a path at which opening the store would fail later, or would work on a file that is
/// unsafe.
pub(in crate::sqlite) fn check_place(path: &Path, create: bool) -> Result<()> {
    check_there(path, create)?;
    check_writable(path, directory_of(path))
}

/// Returns the directory of a path.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Rejects a path at which no store can be, or none is although `create` is false.
pub(super) fn check_there(path: &Path, create: bool) -> Result<()> {
    let directory = directory_of(path);
    if !directory.is_dir() {
        return Err(Error::not_found(format!("the directory {} does not exist; make it first", directory.display())));
    }
    if path.is_dir() {
        return Err(Error::invalid("a directory cannot be a store; name a file in it, such as onward.db"));
    }
    if path.exists() && !path.is_file() {
        return Err(Error::invalid("a device or a pipe cannot be a store; name a file, such as onward.db"));
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

/// Checks that a file can be written. SQLite would open a read-only file for reading only, and
/// would report a missing file on a read-only file system.
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

/// Returns the network file system of a directory, by the magic numbers of Linux's statfs(2).
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

/// Returns `None`, because only Linux reports the file system of a directory.
#[cfg(not(target_os = "linux"))]
fn network_file_system(_directory: &Path) -> Option<&'static str> {
    None
}

/// Adds the store's path to an error.
pub(in crate::sqlite) fn named(path: &Path, error: Error) -> Error {
    error.about(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
