//! A write-ahead log whose appended bytes are passed to the system in few writes.
//!
//! SQLite writes each frame of the log with two calls: 24 bytes that name the page, and the page. A
//! commit of some hundred tasks has some hundred frames, and each call costs more than copying its
//! bytes. So appended bytes are gathered. They are written when there are enough of them, and at
//! the latest with the frame that commits. SQLite publishes a commit in the shared memory only
//! after that frame, so no reader looks for unwritten bytes. If a write fails, the frame that is
//! being appended gets the error. SQLite then rolls back the whole transaction.
//!
//! Gathered bytes of a transaction that does not commit must not be written later, because another
//! process may have written at their offset. So they are discarded when the write lock is released.
//!
//! Nothing here may panic: the callers are C functions.
#![expect(unsafe_code, reason = "a file of SQLite's is a table of C functions; there is no safe way to be one")]

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr;

use rusqlite::ffi;

use super::database_file;
use crate::bounds;

/// The number of bytes before the page of a frame. No other write to a log has this length, and
/// every page is longer.
const FRAME_HEADER: usize = 24;

/// The methods of one open log. The file's `pMethods` points to `own`, which is the first field.
/// SQLite uses a file in one thread at a time.
#[repr(C)]
pub(super) struct LogFile {
    /// The table of methods, to which SQLite has a pointer.
    own: ffi::sqlite3_io_methods,
    /// The methods of the system's VFS, which do the work.
    system: *const ffi::sqlite3_io_methods,
    /// The database file to which the log belongs, while that is open.
    database: Cell<*mut ffi::sqlite3_file>,
    /// The appended bytes that are not written yet. Their last one is before the offset `end`.
    gathered: RefCell<Vec<u8>>,
    /// The offset at which the next bytes are appended, if it is known.
    end: Cell<Option<i64>>,
    /// True if the last begun frame is a commit.
    commits: Cell<bool>,
}

/// Replaces the methods of an open log that depend on unwritten bytes.
///
/// # Safety
/// `file` was opened by the system's VFS as the log of `database`, and no other thread uses it yet;
/// `database` is open, and [`database_file::take_place`] was done on it.
pub(super) unsafe fn take_place(file: *mut ffi::sqlite3_file, database: *mut ffi::sqlite3_file) {
    // SAFETY: an `xOpen` that succeeds has set `pMethods` to a table that outlives the file; tables
    // are plain data.
    let system = unsafe { (*file).pMethods };
    // SAFETY: see above.
    let copy = unsafe { ptr::read(system) };
    let own = ffi::sqlite3_io_methods {
        // Without `xFetch` and `xUnfetch`, which version 3 added: SQLite would read mapped bytes
        // without calling `xRead`.
        iVersion: copy.iVersion.min(2),
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        xFileSize: Some(file_size),
        ..copy
    };
    let log = Box::into_raw(Box::new(LogFile {
        own,
        system,
        database: Cell::new(database),
        gathered: RefCell::default(),
        end: Cell::new(None),
        commits: Cell::new(false),
    }));
    // SAFETY: the caller guarantees that the database is open. The log is set here and removed by
    // `close`, while both are open.
    unsafe { database_file::methods(database) }.set_log(log);
    // SAFETY: `file` is valid for writes, as SQLite gave it to `xOpen`. The new table lives until
    // `close` frees it, which is the last call on the file. The unix VFS calls its methods by name
    // and never looks at `pMethods` of its own files.
    unsafe { (*file).pMethods = log.cast() };
}

/// # Safety
/// `file` is one on which [`take_place`] was done and [`close`] was not, and `close` is not called
/// while the returned reference lives.
unsafe fn log_of<'a>(file: *mut ffi::sqlite3_file) -> &'a LogFile {
    // SAFETY: `pMethods` was set by `take_place` to the first field of a `repr(C)` `LogFile` in a
    // box, which is not freed before `close` and to which there never is a mutable reference.
    // SQLite uses a file in one thread at a time, so the cells in it are not raced for.
    unsafe { &*(*file).pMethods.cast::<LogFile>() }
}

impl LogFile {
    /// Discards the gathered bytes, because the transaction has ended without a commit.
    pub(super) fn forget(&self) {
        if let Ok(mut gathered) = self.gathered.try_borrow_mut()
            && !gathered.is_empty()
        {
            gathered.clear();
            self.end.set(None);
        }
    }

    /// Clears the pointer to the database file, which was closed.
    pub(super) fn lose_database(&self) {
        self.database.set(ptr::null_mut());
    }

    /// Writes with the system's `xWrite`, and records the offset after it.
    ///
    /// # Safety
    /// `file` is the file of this log.
    unsafe fn write_through(&self, file: *mut ffi::sqlite3_file, bytes: &[u8], offset: i64) -> c_int {
        let Ok(length) = c_int::try_from(bytes.len()) else { return ffi::SQLITE_IOERR_WRITE };
        // SAFETY: the method of the table that the system gave this very file; a slice is valid for
        // reads of its length.
        let code = unsafe {
            (*self.system).xWrite.map_or(ffi::SQLITE_IOERR, |write| write(file, bytes.as_ptr().cast(), length, offset))
        };
        self.end.set((code == ffi::SQLITE_OK).then(|| offset.saturating_add(length.into())));
        code
    }

    /// Writes the gathered bytes. Discards them if that fails, because SQLite then rolls back.
    ///
    /// # Safety
    /// `file` is the file of this log.
    unsafe fn flush(&self, file: *mut ffi::sqlite3_file) -> c_int {
        let Ok(mut gathered) = self.gathered.try_borrow_mut() else { return ffi::SQLITE_IOERR_WRITE };
        let (Some(end), Ok(length)) = (self.end.get(), i64::try_from(gathered.len())) else { return ffi::SQLITE_OK };
        if gathered.is_empty() {
            return ffi::SQLITE_OK;
        }
        // SAFETY: the caller promises the file.
        let code = unsafe { self.write_through(file, &gathered, end.saturating_sub(length)) };
        gathered.clear();
        code
    }

    /// Adds to the gathered bytes, and writes them first if there are too many.
    ///
    /// # Safety
    /// `file` is the file of this log.
    unsafe fn append(&self, file: *mut ffi::sqlite3_file, bytes: &[u8], offset: i64) -> c_int {
        let gathered = self.gathered.try_borrow().map_or(0, |gathered| gathered.len());
        if gathered + bytes.len() > bounds::LOG_GATHERED_BYTES {
            // SAFETY: the caller promises the file.
            let code = unsafe { self.flush(file) };
            if code != ffi::SQLITE_OK {
                return code;
            }
        }
        let (Ok(mut gathered), Ok(length)) = (self.gathered.try_borrow_mut(), i64::try_from(bytes.len())) else {
            return ffi::SQLITE_IOERR_WRITE;
        };
        gathered.extend_from_slice(bytes);
        self.end.set(Some(offset.saturating_add(length)));
        ffi::SQLITE_OK
    }

    /// Records if a frame that begins is a commit. Its header then has the size of the database in
    /// pages.
    fn note_frame(&self, bytes: &[u8]) {
        if let Ok([_, _, _, _, pages @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _]) =
            <&[u8; FRAME_HEADER]>::try_from(bytes)
        {
            self.commits.set(*pages != [0; 4]);
        }
    }
}

/// `xWrite`: gathers appended bytes. Any other write is passed on at once, after the gathered
/// bytes.
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, data: *const c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: only files of `take_place` have this method, and SQLite does not close a file during
    // another call on it.
    let log = unsafe { log_of(file) };
    let Ok(length) = usize::try_from(length) else { return ffi::SQLITE_IOERR_WRITE };
    // SAFETY: SQLite gave a buffer of `length` bytes, which no other code changes until this
    // returns.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
    log.note_frame(bytes);
    let code = if log.end.get() == Some(offset) {
        // SAFETY: `log` is that of `file`.
        unsafe { log.append(file, bytes, offset) }
    } else {
        // SAFETY: as above.
        match unsafe { log.flush(file) } {
            // SAFETY: as above.
            ffi::SQLITE_OK => unsafe { log.write_through(file, bytes, offset) },
            code => code,
        }
    };
    if code == ffi::SQLITE_OK && log.commits.get() && length != FRAME_HEADER {
        // SAFETY: as above.
        return unsafe { log.flush(file) };
    }
    code
}

/// `xRead`: writes the gathered bytes, then calls the system's.
unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, data: *mut c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: as in `write`.
    let log = unsafe { log_of(file) };
    // SAFETY: `log` is that of `file`.
    match unsafe { log.flush(file) } {
        // SAFETY: the method of the table that the system gave this very file, with SQLite's own
        // arguments.
        ffi::SQLITE_OK => unsafe {
            (*log.system).xRead.map_or(ffi::SQLITE_IOERR, |read| read(file, data, length, offset))
        },
        code => code,
    }
}

/// `xTruncate`: writes the gathered bytes, then calls the system's.
unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: as in `write`.
    let log = unsafe { log_of(file) };
    // SAFETY: `log` is that of `file`.
    let flushed = unsafe { log.flush(file) };
    log.end.set(None);
    match flushed {
        // SAFETY: as in `read`.
        ffi::SQLITE_OK => unsafe { (*log.system).xTruncate.map_or(ffi::SQLITE_IOERR, |truncate| truncate(file, size)) },
        code => code,
    }
}

/// `xSync`: writes the gathered bytes, then calls the system's.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as in `write`.
    let log = unsafe { log_of(file) };
    // SAFETY: `log` is that of `file`.
    match unsafe { log.flush(file) } {
        // SAFETY: as in `read`.
        ffi::SQLITE_OK => unsafe { (*log.system).xSync.map_or(ffi::SQLITE_IOERR, |sync| sync(file, flags)) },
        code => code,
    }
}

/// `xFileSize`: writes the gathered bytes, then calls the system's.
unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: as in `write`.
    let log = unsafe { log_of(file) };
    // SAFETY: `log` is that of `file`.
    match unsafe { log.flush(file) } {
        // SAFETY: as in `read`.
        ffi::SQLITE_OK => unsafe { (*log.system).xFileSize.map_or(ffi::SQLITE_IOERR, |ask| ask(file, size)) },
        code => code,
    }
}

/// `xClose`: restores the file's own methods, and calls the system's. Gathered bytes are dropped,
/// because they belong to no commit.
unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: only files of `take_place` have this method, so `pMethods` came from `Box::into_raw`
    // of a `LogFile`. SQLite closes a file once and during no other call on it, so no reference to
    // the box is left and it is freed only here.
    let log = unsafe { Box::from_raw((*file).pMethods.cast_mut().cast::<LogFile>()) };
    let database = log.database.get();
    if !database.is_null() {
        // SAFETY: a database file that is closed clears this pointer, so the file is open.
        unsafe { database_file::methods(database) }.set_log(ptr::null());
    }
    // SAFETY: `file` stays SQLite's valid memory until this call returns; the table is the one the
    // system had set.
    unsafe { (*file).pMethods = log.system };
    // SAFETY: the file is again as the system's VFS left it, and its table outlives it.
    unsafe { (*log.system).xClose.map_or(ffi::SQLITE_IOERR, |close| close(file)) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::{Connection, OpenFlags};
    use tempfile::TempDir;

    use crate::sqlite::file_layer::{NAME, register};

    /// Returns a connection with a cache so small that a transaction of a hundred rows writes to
    /// the log before it commits.
    fn connection(directory: &Path) -> Connection {
        register().unwrap();
        let path = directory.join("file.db");
        let connection = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), NAME).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        connection.pragma_update(None, "cache_size", 10).unwrap();
        connection.execute_batch("CREATE TABLE IF NOT EXISTS list (number INTEGER PRIMARY KEY, text TEXT)").unwrap();
        connection
    }

    fn write(connection: &Connection, numbers: std::ops::Range<u32>, letter: &str) {
        let mut statement = connection.prepare("INSERT OR REPLACE INTO list VALUES (?, ?)").unwrap();
        for number in numbers {
            statement.execute((number, letter.repeat(2000))).unwrap();
        }
    }

    /// Returns what another connection reads: the number of rows of each letter. SQLite's integrity
    /// check must pass.
    fn read(directory: &Path) -> Vec<(String, u32)> {
        let reader = connection(directory);
        let integrity: String = reader.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(integrity, "ok");
        let mut lines = reader.prepare("SELECT substr(text, 1, 1), count(*) FROM list GROUP BY 1 ORDER BY 1").unwrap();
        lines.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    }

    /// Other processes may have the lock by then, and write at that offset.
    #[test]
    fn nothing_is_written_to_the_log_once_a_transaction_has_given_its_lock_back() {
        let directory = TempDir::new().unwrap();
        let one = connection(directory.path());
        let log_bytes = || std::fs::metadata(directory.path().join("file.db-wal")).unwrap().len();
        // If all pages are in the database file, no read from the log can write the gathered bytes
        // while the lock is held.
        one.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        one.execute_batch("BEGIN").unwrap();
        write(&one, 0..40, "a");
        one.execute_batch("ROLLBACK").unwrap();
        write(&one, 0..1, "b");
        assert!(log_bytes() < 20_000, "the log has what was taken back");
    }

    #[test]
    fn a_transaction_that_was_taken_back_disturbs_no_later_one() {
        let directory = TempDir::new().unwrap();
        let (one, other) = (connection(directory.path()), connection(directory.path()));
        one.execute_batch("BEGIN").unwrap();
        write(&one, 0..40, "a");
        one.execute_batch("ROLLBACK").unwrap();
        write(&other, 100..140, "b");
        write(&one, 200..201, "c");
        assert_eq!(read(directory.path()), [("b".to_owned(), 40), ("c".to_owned(), 1)]);
    }

    #[test]
    fn a_commit_is_whole_whose_pages_were_written_to_the_log_more_than_once() {
        let directory = TempDir::new().unwrap();
        let one = connection(directory.path());
        one.execute_batch("BEGIN").unwrap();
        for letter in ["a", "b", "c"] {
            write(&one, 0..100, letter);
        }
        one.execute_batch("COMMIT").unwrap();
        assert_eq!(read(directory.path()), [("c".to_owned(), 100)]);
    }

    #[test]
    fn what_a_savepoint_takes_back_is_not_in_the_commit() {
        let directory = TempDir::new().unwrap();
        let one = connection(directory.path());
        one.execute_batch("BEGIN").unwrap();
        write(&one, 0..50, "a");
        one.execute_batch("SAVEPOINT half").unwrap();
        write(&one, 20..90, "b");
        one.execute_batch("ROLLBACK TO half; COMMIT").unwrap();
        assert_eq!(read(directory.path()), [("a".to_owned(), 50)]);
    }

    #[test]
    fn a_transaction_reads_what_it_has_written_to_the_log() {
        let directory = TempDir::new().unwrap();
        let one = connection(directory.path());
        one.execute_batch("BEGIN").unwrap();
        write(&one, 0..100, "a");
        let bytes: u32 = one.query_row("SELECT sum(length(text)) FROM list", [], |row| row.get(0)).unwrap();
        assert_eq!(bytes, 200_000);
    }
}
