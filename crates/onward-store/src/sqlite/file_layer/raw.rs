//! Reads the database file of a connection without the write-ahead log.
//!
//! It uses the connection's own descriptor. When a process closes any descriptor of a file, the
//! system drops all locks that the process has on the file, including SQLite's.
#![expect(unsafe_code, reason = "a file of SQLite's is a table of C functions")]

use std::ffi::c_int;
use std::ptr;

use rusqlite::{Connection, ffi};

/// The result of reading from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum RawRead {
    /// All bytes were read.
    Whole,
    /// The file ends earlier.
    Short,
    /// The read failed.
    Failed,
}

/// Fills a buffer from the database file of a connection.
pub(in crate::sqlite) fn read_file(connection: &Connection, buffer: &mut [u8], offset: usize) -> RawRead {
    let (Ok(length), Ok(offset)) = (c_int::try_from(buffer.len()), i64::try_from(offset)) else {
        return RawRead::Failed;
    };
    let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
    // SAFETY: the connection is open as long as it is borrowed, and only this thread uses it during
    // the call, since a `Connection` is not `Sync`. The request takes a pointer to a pointer to a
    // file, which is written during the call only.
    let code = unsafe {
        let argument = (&raw mut file).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_FILE_POINTER, argument)
    };
    if code != ffi::SQLITE_OK || file.is_null() {
        return RawRead::Failed;
    }
    // SAFETY: the file belongs to the open connection and so stays valid; `pMethods` is null if it
    // is not open (a database in memory), and else a table that outlives it.
    let Some(read) = (unsafe { (*file).pMethods.as_ref() }).and_then(|methods| methods.xRead) else {
        return RawRead::Failed;
    };
    // SAFETY: the method of that very file; the buffer is valid for writes of `length` bytes.
    match unsafe { read(file, buffer.as_mut_ptr().cast(), length, offset) } {
        ffi::SQLITE_OK => RawRead::Whole,
        ffi::SQLITE_IOERR_SHORT_READ => RawRead::Short,
        _ => RawRead::Failed,
    }
}

/// Returns true if the file of a connection is no longer at the path by which it was opened.
pub(in crate::sqlite) fn has_moved(connection: &Connection) -> bool {
    let mut moved: c_int = 0;
    // SAFETY: as in `read_file`; this request takes a pointer to an `int`.
    let code = unsafe {
        let argument = (&raw mut moved).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_HAS_MOVED, argument)
    };
    code == ffi::SQLITE_OK && moved != 0
}
