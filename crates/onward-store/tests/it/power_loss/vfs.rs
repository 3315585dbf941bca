//! The layer between SQLite and the disk, which records changes.
//!
//! It replaces `xOpen` and `xDelete` of the system's VFS, and the three methods of recorded files
//! that change a file or sync it.
#![expect(unsafe_code, reason = "SQLite's VFS is a table of C functions; there is no safe way to be one")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::slice;
use std::sync::Once;

use rusqlite::ffi;

use super::recording::{self, RecordedFile};
use crate::vfs_layer::{attach, methods, open_in_system, path_of, register_layer, system};

/// The name of the layer in SQLite.
pub(super) const NAME: &str = "onward-power-loss";

const C_NAME: &CStr = c"onward-power-loss";

/// Registers the layer with SQLite, once in the life of the process.
pub(super) fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        register_layer(C_NAME, |layer| {
            layer.xOpen = Some(open);
            layer.xDelete = Some(delete);
        });
    });
}

/// `xOpen`: opens the system's file and, if its store is recorded, replaces the file's methods.
unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are those of this `xOpen`.
    let open = || unsafe { open_in_system(name, file, flags, flags_out) };
    // SAFETY: SQLite's file names are null or strings that end in a zero and live as long as the
    // file is open.
    let found = unsafe { path_of(name) }.and_then(|path| recording::find(&path));
    let Some((recording, part)) = found else { return open() };
    match recording.open(part, open) {
        Ok(recorded) => {
            // SAFETY: the system's `xOpen` has just succeeded on `file`, and no other code knows it
            // yet. The replacements read a `RecordedFile`.
            unsafe { attach(file, recorded, replace_methods) };
            ffi::SQLITE_OK
        }
        Err(code) => code,
    }
}

/// `xDelete`.
unsafe extern "C" fn delete(_vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    let system = system();
    let delete_in_system = || {
        // SAFETY: `system` is a registered VFS; the arguments are SQLite's own, passed on under the
        // same contract.
        unsafe { (*system).xDelete.map_or(ffi::SQLITE_IOERR, |delete| delete(system, name, sync_directory)) }
    };
    // SAFETY: SQLite names the file by a string that ends in a zero and lives until this call
    // returns.
    match unsafe { path_of(name) }.and_then(|path| recording::find(&path)) {
        Some((recording, part)) => recording.delete(part, delete_in_system),
        None => delete_in_system(),
    }
}

/// Replaces the methods that change a file or sync it.
fn replace_methods(methods: &mut ffi::sqlite3_io_methods) {
    methods.xWrite = Some(write);
    methods.xTruncate = Some(truncate);
    methods.xSync = Some(sync);
}

/// `xWrite`.
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, data: *const c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: only recorded files have this method, and SQLite does not close a file during
    // another call on it.
    let methods = unsafe { methods::<RecordedFile>(file) };
    // SAFETY: SQLite promises `length` readable bytes at `data` until this call returns, and a
    // length above zero.
    let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), length as usize) };
    methods.state.write(offset as u64, bytes, || {
        // SAFETY: the method of the table that the system gave this very file, with SQLite's own
        // arguments.
        unsafe { (*methods.system).xWrite.map_or(ffi::SQLITE_IOERR, |write| write(file, data, length, offset)) }
    })
}

/// `xTruncate`.
unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: as in `write`.
    let methods = unsafe { methods::<RecordedFile>(file) };
    methods.state.truncate(size as u64, || {
        // SAFETY: as in `write`.
        unsafe { (*methods.system).xTruncate.map_or(ffi::SQLITE_IOERR, |truncate| truncate(file, size)) }
    })
}

/// `xSync`. The disk need not sync, because the recording contains the meaning of a sync.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: as in `write`.
    unsafe { methods::<RecordedFile>(file) }.state.sync();
    ffi::SQLITE_OK
}
