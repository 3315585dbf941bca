//! The record of whose write-ahead log lies beside a file, and what may be opened beside which log.
//!
//! SQLite takes any log that lies beside a database for that database's, and writes it over the
//! database when it closes it. The log may be of a killed process, or of a process whose file was
//! moved. It then damages the new file, and its own changes are lost. So the directory
//! `<file>-sessions` has a record, `log`: the salts of the log, which are drawn again whenever the
//! log begins again, and the identity that the file had then. A file whose number is another, or
//! whose generation is older, is not opened beside that log.
//!
//! A log without a record is taken as it is: a copy of a store with its log has none, and a power
//! failure may have left an old one.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::api::error::{Error, Result};
use crate::sqlite::file_layer::identity::{Found, Identity, seen_by};
use crate::sqlite::file_layer::store_files::set_leaves_log;

/// The name of the record in the directory.
pub(in crate::sqlite) const RECORD: &str = "log";

/// A log of fewer bytes has a header at most, and no page.
const EMPTY_LOG: u64 = 32;

/// The part of a log's header that is drawn whenever the log begins again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Salts(pub(in crate::sqlite) [u8; 8]);

impl Salts {
    /// Their offset (SQLite's file format, section 4.1).
    pub(in crate::sqlite) const OFFSET: u64 = 16;
}

/// The record beside one store.
#[derive(Debug)]
pub(super) struct LogOwner(PathBuf);

impl LogOwner {
    /// Returns the record for the store at a path.
    pub(in crate::sqlite) fn beside(store: &Path) -> Self {
        Self(with_suffix(store, "-sessions").join(RECORD))
    }

    /// Records that the log with these salts continues the file with this identity.
    pub(in crate::sqlite) fn record(&self, salts: Salts, identity: Identity) -> io::Result<()> {
        fs::write(&self.0, text(salts, identity))
    }

    /// Returns the identity that the file had when the log with these salts began, if that is
    /// recorded.
    pub(in crate::sqlite) fn of(&self, salts: Salts) -> Option<Identity> {
        let (recorded, identity) = parse(&fs::read_to_string(&self.0).ok()?)?;
        (recorded == salts).then_some(identity)
    }
}

/// Returns a path with a suffix behind its last name.
pub(in crate::sqlite) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Formats a record. The period marks the end, so that a torn record is noticed.
fn text(salts: Salts, identity: Identity) -> String {
    format!("{} {} {}.\n", hexadecimal(&salts.0), hexadecimal(&identity.store), identity.generation)
}

/// Formats bytes in hexadecimal.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads a record; `None` if it is not whole.
fn parse(text: &str) -> Option<(Salts, Identity)> {
    let mut words = text.strip_suffix(".\n")?.split(' ');
    let salts = u64::from_str_radix(words.next()?, 16).ok()?.to_be_bytes();
    let store = u128::from_str_radix(words.next()?, 16).ok()?.to_be_bytes();
    let generation = words.next()?.parse().ok()?;
    Some((Salts(salts), Identity { store, generation }))
}

/// Rejects a path where SQLite would open or create a file that other processes know by another
/// name, or that lies beside the log of a file that is gone. Changes nothing.
pub(in crate::sqlite) fn check_names(path: &Path) -> Result<()> {
    let found = match fs::metadata(path) {
        Ok(found) => Some(found),
        Err(failure) if failure.kind() == io::ErrorKind::NotFound => None,
        // An error here is reported by opening the file.
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

/// Rejects a file with several names: SQLite names the log after the path, so that each name of a
/// file would have a log of its own.
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

/// Rejects a file beside the log of another store, or of a later state of this one. Nothing may
/// have been read through the connection yet.
pub(in crate::sqlite) fn check_log(connection: &Connection, path: &Path) -> Result<()> {
    if log_bytes(path) <= EMPTY_LOG {
        return Ok(());
    }
    let Found::Identity(file) = Found::in_file(connection) else {
        // Another program's file, or one that cannot be read, which opening it reports.
        return Ok(());
    };
    match salts_beside(path).and_then(|salts| LogOwner::beside(path).of(salts)) {
        Some(owner) if owner.store != file.store => return Err(foreign(path, "another store's file")),
        Some(owner) if owner.generation > file.generation => {
            return Err(foreign(path, "a later state of this store's file, such as one that a backup has replaced"));
        }
        Some(_) => return Ok(()),
        None => {}
    }
    // Without a record the log itself may show to which file it belongs. Read only: closing must
    // not copy it back.
    set_leaves_log(connection, true);
    if seen_by(connection).is_some_and(|store| store != file.store) {
        return Err(foreign(path, "another store's file"));
    }
    set_leaves_log(connection, false);
    Ok(())
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

    proptest! {
        #[test]
        fn a_record_is_read_back(salts: [u8; 8], store: [u8; 16], generation: i64) {
            let identity = Identity { store, generation };
            prop_assert_eq!(parse(&text(Salts(salts), identity)), Some((Salts(salts), identity)));
        }

        #[test]
        fn half_a_record_is_none(salts: [u8; 8], store: [u8; 16], generation: i64, cut in 1usize..40) {
            let whole = text(Salts(salts), Identity { store, generation });
            prop_assert_eq!(parse(&whole[..whole.len() - cut]), None);
        }
    }
}
