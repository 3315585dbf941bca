//! The owner of a write-ahead log: a record of the file to which the log beside a store belongs.
//!
//! SQLite takes any log beside a database for that database's, and copies it into the database when
//! it closes it. But the log may be of a killed process, or of a process whose file was moved. It
//! would damage the new file, and the log's own changes would be lost. So the directory
//! `<file>-sessions` has a record, `log`. It holds the salts of the log, which are drawn whenever
//! the log begins again, and the identity of the file at that time. A file with another number, or
//! with an older generation, is not opened beside that log.
//!
//! A log gets its salts in the commit that begins it, and the process may be killed before it
//! records them. So the record is also written before such a commit, with the generation that the
//! file has below the next log, and is valid for any salts of that log.
//!
//! A log without a record is accepted: a copy of a store with its log has none, and after a power
//! failure the record may be an old one.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::api::error::{Error, Result};
use crate::sqlite::file_layer::identity::{Identity, StoredIdentity, seen_by};
use crate::sqlite::file_layer::store_files::set_leaves_log;

/// The name of the record in the directory.
pub(in crate::sqlite) const RECORD: &str = "log";

/// The size in bytes below which a log has a header at most.
const EMPTY_LOG: u64 = 32;

/// The part of a log's header that is drawn again whenever the log begins again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Salts(pub(in crate::sqlite) [u8; 8]);

impl Salts {
    /// Their offset in the log (SQLite's file format, section 4.1).
    pub(in crate::sqlite) const OFFSET: u64 = 16;
}

/// The content of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    /// The salts of the log.
    salts: Salts,
    /// The identity of the file when that log began.
    identity: Identity,
    /// The generation of the file when the next log begins, if it may have begun.
    next: Option<i64>,
}

/// The record beside one store.
#[derive(Debug)]
pub(super) struct LogOwner(PathBuf);

impl LogOwner {
    /// Returns the record for the store at a path.
    pub(in crate::sqlite) fn beside(store: &Path) -> Self {
        Self(with_suffix(store, "-sessions").join(RECORD))
    }

    /// Records that the log with these salts belongs to the file with this identity.
    pub(in crate::sqlite) fn record(&self, salts: Salts, identity: Identity) -> io::Result<()> {
        self.write(Record { salts, identity, next: None })
    }

    /// Records that the next log, with other salts than these, belongs to the file with this
    /// identity.
    pub(in crate::sqlite) fn announce(&self, salts: Salts, identity: Identity) -> io::Result<()> {
        let present = self.read().filter(|record| record.salts == salts && record.identity.store == identity.store);
        let identity_before = present.map_or(identity, |record| record.identity);
        let record = Record { salts, identity: identity_before, next: Some(identity.generation) };
        if present == Some(record) { Ok(()) } else { self.write(record) }
    }

    /// Returns the recorded identity of the file when the log with these salts began.
    pub(in crate::sqlite) fn of(&self, salts: Salts) -> Option<Identity> {
        self.read().filter(|record| record.salts == salts).map(|record| record.identity)
    }

    /// Removes the record if it is of another store than the one in this file.
    fn remove_others(&self, file: StoredIdentity) {
        let is_same =
            |record: Record| matches!(file, StoredIdentity::Identity(file) if file.store == record.identity.store);
        if file != StoredIdentity::Unknown && self.read().is_some_and(|record| !is_same(record)) {
            // A record that cannot be removed makes the next check stricter, and the next commit
            // replaces it.
            let _ = fs::remove_file(&self.0);
        }
    }

    /// Reads the record. Returns `None` if there is none, or if it is damaged.
    fn read(&self) -> Option<Record> {
        parse(&fs::read_to_string(&self.0).ok()?)
    }

    /// Writes the record.
    fn write(&self, record: Record) -> io::Result<()> {
        fs::write(&self.0, text(record))
    }
}

/// Returns a path with a suffix after its last name.
pub(in crate::sqlite) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Formats a record. The period marks its end, so that an incomplete record is detected.
fn text(Record { salts, identity, next }: Record) -> String {
    let next = next.map_or_else(String::new, |generation| format!(" {generation}"));
    format!("{} {} {}{next}.\n", hexadecimal(&salts.0), hexadecimal(&identity.store), identity.generation)
}

/// Formats bytes in hexadecimal.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Parses a record; `None` if it is incomplete.
fn parse(text: &str) -> Option<Record> {
    let mut words = text.strip_suffix(".\n")?.split(' ');
    let salts = Salts(u64::from_str_radix(words.next()?, 16).ok()?.to_be_bytes());
    let store = u128::from_str_radix(words.next()?, 16).ok()?.to_be_bytes();
    let generation = words.next()?.parse().ok()?;
    let next = words.next().map(str::parse).transpose().ok()?;
    Some(Record { salts, identity: Identity { store, generation }, next })
}

/// Rejects a path if SQLite would open or create a file that other processes know by another name,
/// or a file beside the log of a lost one. Changes nothing.
pub(in crate::sqlite) fn check_names(path: &Path) -> Result<()> {
    let found = match fs::metadata(path) {
        Ok(found) => Some(found),
        Err(failure) if failure.kind() == io::ErrorKind::NotFound => None,
        // Opening the file reports the error.
        Err(_) => return Ok(()),
    };
    if let Some(found) = &found {
        check_links(found)?;
    }
    if found.is_none_or(|found| found.len() == 0) && log_bytes(path) > EMPTY_LOG {
        return Err(foreign(path, "a store's file that is no longer here"));
    }
    Ok(())
}

/// Rejects a file with several names. SQLite names the log after the path, so each name would have
/// a log of its own.
fn check_links(found: &fs::Metadata) -> Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    match found.nlink() {
        0 | 1 => Ok(()),
        names => Err(Error::replaced(format!(
            "the file has {names} names (hard links), and a store must have one, for its -wal is found by its name; remove the others, or \
             make copies of them"
        ))),
    }
}

/// Rejects a file beside the log of another store, or of a later state of this one. It must run
/// before the first read on the connection.
pub(in crate::sqlite) fn check_log(connection: &Connection, path: &Path) -> Result<()> {
    if log_bytes(path) <= EMPTY_LOG {
        return Ok(());
    }
    let StoredIdentity::Identity(file) = StoredIdentity::in_file(connection) else {
        // The file of another program, or one that cannot be read. Opening it reports that.
        return Ok(());
    };
    if let Some(record) = LogOwner::beside(path).read() {
        let is_its_log = salts_beside(path) == Some(record.salts);
        let began_at = if is_its_log { Some(record.identity.generation) } else { record.next };
        if record.identity.store != file.store {
            return Err(foreign(path, "another store's file"));
        }
        if began_at.is_some_and(|generation| generation > file.generation) {
            return Err(foreign(path, "a later state of this store's file, such as one that a backup has replaced"));
        }
        if is_its_log {
            return Ok(());
        }
    }
    // Without a record, the pages in the log may show to which file it belongs. Closing this
    // connection must not copy the log.
    set_leaves_log(connection, true);
    if seen_by(connection).is_some_and(|store| store != file.store) {
        return Err(foreign(path, "another store's file"));
    }
    set_leaves_log(connection, false);
    Ok(())
}

/// Removes the record of an earlier store at the path, if its log is gone as well.
pub(in crate::sqlite) fn forget_other_store(connection: &Connection, path: &Path) {
    if log_bytes(path) == 0 {
        LogOwner::beside(path).remove_others(StoredIdentity::in_file(connection));
    }
}

/// Returns the size of the log beside a file; 0 if there is none.
pub(in crate::sqlite) fn log_bytes(path: &Path) -> u64 {
    fs::metadata(with_suffix(path, "-wal")).map_or(0, |log| log.len())
}

/// Reads the salts of the log beside a file.
fn salts_beside(path: &Path) -> Option<Salts> {
    let log = fs::File::open(with_suffix(path, "-wal")).ok()?;
    let mut salts = Salts::default();
    log.read_exact_at(&mut salts.0, Salts::OFFSET).ok()?;
    Some(salts)
}

/// The error for a log that belongs to another store.
#[cold]
fn foreign(path: &Path, owner: &str) -> Error {
    let log = with_suffix(path, "-wal");
    let log = log.display();
    Error::replaced(format!(
        "the write-ahead log {log} belongs to {owner} and may hold work that is nowhere else, so nothing is opened or made beside it; \
         end the processes that use it and put that file back to go on with it, or move the -wal and -shm files away to do without it"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sqlite::file_layer::store_files::StoreFiles;
    use crate::sqlite::migrations::migrate::{MIGRATIONS, migrate};
    use crate::sqlite::store::connect::connect;

    const RAISE: &str = "BEGIN IMMEDIATE; UPDATE identity SET generation = generation + 1";

    /// Creates a store with an empty log.
    fn made(path: &Path) -> Connection {
        let mut connection = connect(path, None).unwrap();
        fs::create_dir_all(with_suffix(path, "-sessions")).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL").unwrap();
        migrate(&mut connection, MIGRATIONS).unwrap();
        checkpoint(&connection);
        connection
    }

    fn checkpoint(connection: &Connection) {
        connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
    }

    /// Commits as a process that is killed before it records the log that the commit began.
    fn killed_after_commit(connection: &Connection, path: &Path) {
        let mut files = StoreFiles::opened(connection, path).unwrap();
        connection.execute_batch(RAISE).unwrap();
        files.check_before(connection).unwrap();
        files.announce_log();
        connection.execute_batch("COMMIT").unwrap();
        leave(connection);
    }

    fn leave(connection: &Connection) {
        set_leaves_log(connection, true);
    }

    fn checked(path: &Path) -> Result<()> {
        let connection = connect(path, None).unwrap();
        let checked = check_log(&connection, path);
        leave(&connection);
        checked
    }

    #[test]
    fn an_older_copy_is_refused_beside_a_log_whose_salts_were_not_recorded() {
        let directory = tempfile::tempdir().unwrap();
        let (path, copy) = (directory.path().join("onward.db"), directory.path().join("copy.db"));
        let connection = made(&path);
        fs::copy(&path, &copy).unwrap();
        connection.execute_batch(&format!("{RAISE}; COMMIT")).unwrap();
        checkpoint(&connection);
        killed_after_commit(&connection, &path);
        drop(connection);
        checked(&path).unwrap();
        fs::copy(&copy, &path).unwrap();
        assert!(checked(&path).unwrap_err().is_replaced());
    }

    #[test]
    fn another_store_is_refused_beside_the_log_of_a_killed_process_whatever_its_salts() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("onward.db"), directory.path().join("other.db"));
        drop(made(&other));
        let connection = made(&path);
        killed_after_commit(&connection, &path);
        drop(connection);
        fs::copy(&other, &path).unwrap();
        assert!(checked(&path).unwrap_err().is_replaced());
    }

    #[test]
    fn the_record_of_a_store_that_was_removed_with_its_log_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        let connection = made(&path);
        killed_after_commit(&connection, &path);
        drop(connection);
        for suffix in ["", "-wal", "-shm"] {
            fs::remove_file(with_suffix(&path, suffix)).unwrap();
        }
        let connection = connect(&path, None).unwrap();
        forget_other_store(&connection, &path);
        assert!(!with_suffix(&path, "-sessions").join(RECORD).exists());
    }

    proptest! {
        #[test]
        fn a_record_is_read_back(salts: [u8; 8], store: [u8; 16], generation: i64, next: Option<i64>) {
            let record = Record { salts: Salts(salts), identity: Identity { store, generation }, next };
            prop_assert_eq!(parse(&text(record)), Some(record));
        }

        #[test]
        fn half_a_record_is_none(salts: [u8; 8], store: [u8; 16], generation: i64, next: Option<i64>, cut in 1usize..40) {
            let whole = text(Record { salts: Salts(salts), identity: Identity { store, generation }, next });
            prop_assert_eq!(parse(&whole[..whole.len() - cut]), None);
        }
    }
}
