//! The identity of a store's file: a random number of the store, and a generation that each
//! checkpoint changes.
//!
//! Both are in the only row of the table `identity`. It is the first table of the schema, so its
//! page is the second of the file. It is read from the database file itself, without the
//! write-ahead log, so it shows what the file holds before the log is applied.

use rusqlite::Connection;

use crate::sqlite::file_layer::{self, RawRead};

/// The bytes of the file's header that are read.
const HEADER: usize = 100;

/// The byte that begins a leaf page of a table.
const TABLE_LEAF: u8 = 0x0d;

/// The identity of a file at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    /// The random number of the store. Copies have the same.
    pub(in crate::sqlite) store: [u8; 16],
    /// The generation. It goes up at least once between two checkpoints that copy pages.
    pub(in crate::sqlite) generation: i64,
}

/// The result of reading an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredIdentity {
    /// The file has this identity.
    Identity(Identity),
    /// The file has no such page or no such row.
    Nothing,
    /// The disk did not return the page, so the identity is unknown.
    Unknown,
}

impl StoredIdentity {
    /// Reads the identity from the file of a connection.
    pub(in crate::sqlite) fn in_file(connection: &Connection) -> Self {
        let mut header = [0; HEADER];
        match file_layer::read_file(connection, &mut header, 0) {
            RawRead::Whole => {}
            RawRead::Short => return Self::Nothing,
            RawRead::Failed => return Self::Unknown,
        }
        match page_size(&header) {
            Some(size) => Self::on_page(connection, &mut vec![0; size]),
            None => Self::Nothing,
        }
    }

    /// Reads the identity, with a buffer as long as a page of the file.
    pub(super) fn on_page(connection: &Connection, page: &mut [u8]) -> Self {
        match file_layer::read_file(connection, page, page.len()) {
            RawRead::Whole => Identity::on_page(page).map_or(Self::Nothing, Self::Identity),
            RawRead::Short => Self::Nothing,
            RawRead::Failed => Self::Unknown,
        }
    }
}

/// Returns the page size from the header of a database file (SQLite's file format, section 1.3.2).
fn page_size(header: &[u8; HEADER]) -> Option<usize> {
    if !header.starts_with(b"SQLite format 3\0") {
        return None;
    }
    match u16::from_be_bytes([header[16], header[17]]) {
        1 => Some(65_536),
        size if size >= 512 => Some(size.into()),
        _ => None,
    }
}

impl Identity {
    /// Reads the row from its page (SQLite's file format, sections 1.6 and 2.1).
    fn on_page(page: &[u8]) -> Option<Self> {
        let header: &[u8; 10] = page.first_chunk()?;
        if header[0] != TABLE_LEAF || header[3..5] != [0, 1] {
            return None;
        }
        let cell = page.get(usize::from(u16::from_be_bytes([header[8], header[9]]))..)?;
        // The length of the row, its number, and the types of its columns: NULL for the number, 16
        // bytes, an integer.
        let (&[_, 1, 4, 0, 0x2c, integer], rest) = cell.split_first_chunk()? else { return None };
        let (store, rest) = rest.split_first_chunk()?;
        Some(Self { store: *store, generation: integer_of(integer, rest)? })
    }
}

/// Reads an integer, whose length follows from its type.
fn integer_of(kind: u8, bytes: &[u8]) -> Option<i64> {
    let length = match kind {
        8 => return Some(0),
        9 => return Some(1),
        1..=4 => usize::from(kind),
        5 => 6,
        6 => 8,
        _ => return None,
    };
    let bytes = bytes.get(..length)?;
    let sign = if bytes.first()? & 0x80 == 0 { 0 } else { -1 };
    Some(bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte)))
}

/// Reads the number of the store as a transaction sees it, with the log applied; `None` if it
/// cannot be read.
pub(super) fn seen_by(connection: &Connection) -> Option<[u8; 16]> {
    connection.query_row("SELECT store FROM identity", [], |row| row.get(0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrations::migrate::{MIGRATIONS, migrate};
    use crate::sqlite::store::connect::connect;

    fn made(directory: &tempfile::TempDir) -> Connection {
        let mut connection = connect(&directory.path().join("onward.db"), None).unwrap();
        migrate(&mut connection, MIGRATIONS).unwrap();
        connection
    }

    #[test]
    fn what_is_read_from_the_file_is_what_its_table_says() {
        let directory = tempfile::tempdir().unwrap();
        let connection = made(&directory);
        for generation in [0, 1, 2, -1, 127, 128, 300, 70_000, 1 << 25, 1 << 33, 1 << 50, i64::MAX] {
            connection.execute("UPDATE identity SET generation = ?", [generation]).unwrap();
            let store = seen_by(&connection).unwrap();
            assert_eq!(StoredIdentity::in_file(&connection), StoredIdentity::Identity(Identity { store, generation }));
        }
    }

    #[test]
    fn a_compacted_file_has_its_identity_where_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let connection = made(&directory);
        let before = StoredIdentity::in_file(&connection);
        connection.execute_batch("VACUUM").unwrap();
        assert_eq!(StoredIdentity::in_file(&connection), before);
    }

    #[test]
    fn two_stores_have_different_identities() {
        let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [one, other] = directories.each_ref().map(|directory| StoredIdentity::in_file(&made(directory)));
        assert_ne!(one, other);
    }

    #[test]
    fn another_programs_file_and_an_empty_one_have_none() {
        let directory = tempfile::tempdir().unwrap();
        let connection = connect(&directory.path().join("other.db"), None).unwrap();
        assert_eq!(StoredIdentity::in_file(&connection), StoredIdentity::Nothing);
        connection.execute_batch("CREATE TABLE a (b); INSERT INTO a VALUES (1)").unwrap();
        assert_eq!(StoredIdentity::in_file(&connection), StoredIdentity::Nothing);
    }

    proptest::proptest! {
        #[test]
        fn damaged_pages_are_refused_or_read_and_never_panic(page: Vec<u8>) {
            let _ = Identity::on_page(&page);
        }
    }
}
