//! The layer between SQLite and the disk.
//!
//! The layer is the system's VFS with its own `xOpen` and `xDelete`. The recorded files are the
//! system's own files, with replacements for the four methods that change a file, sync it, or close
//! it. All other operations of SQLite on a file (locks, shared memory, reads) call the system's
//! method directly.
#![expect(unsafe_code, reason = "SQLite's VFS is a table of C functions; there is no safe way to be one")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::slice;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use rusqlite::ffi;

use super::recording::{self, RecordedFile};

/// The name of the layer in SQLite.
pub(super) const NAME: &str = "onward-power-loss";

const C_NAME: &CStr = c"onward-power-loss";

/// The system's VFS. It is kept here because a method may be called with the VFS of another layer
/// on top of this one.
static SYSTEM: AtomicPtr<ffi::sqlite3_vfs> = AtomicPtr::new(ptr::null_mut());

/// The methods of one open file. The file's `pMethods` points to `own`, which is the first field,
/// or to the methods of a layer on top of this one. A pointer to this struct follows the system's
/// file.
#[repr(C)]
struct Methods {
    own: ffi::sqlite3_io_methods,
    system: *const ffi::sqlite3_io_methods,
    file: RecordedFile,
}

/// Registers the layer with SQLite, once in the life of the process.
pub(super) fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: a null name asks for the default VFS; the call initializes SQLite if need be, and
        // may come from any thread.
        let system = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
        assert!(!system.is_null(), "SQLite has a VFS of the system");
        // SAFETY: what `sqlite3_vfs_find` returns, other than null, is a registered VFS, which is
        // never unregistered here and so is valid for reads; the struct is plain data and may be
        // copied.
        let copy = unsafe { ptr::read(system) };
        let own = ffi::sqlite3_vfs {
            zName: C_NAME.as_ptr(),
            szOsFile: copy.szOsFile + size_of::<*mut Methods>() as c_int,
            pNext: ptr::null_mut(),
            xOpen: Some(open),
            xDelete: Some(delete),
            ..copy
        };
        SYSTEM.store(system, Ordering::Release);
        let layer = Box::into_raw(Box::new(own));
        // SAFETY: a registered VFS must stay valid, and belongs to SQLite from here on: the box is
        // leaked and not touched by Rust again. It is a whole VFS: the methods that were not
        // replaced are the system's and find in it the `pAppData` and `mxPathname` that they would
        // find in their own, and its files have room for the system's.
        let code = unsafe { ffi::sqlite3_vfs_register(layer, 0) };
        assert_eq!(code, ffi::SQLITE_OK, "the layer can be registered");
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
    let system = SYSTEM.load(Ordering::Acquire);
    let open_in_system = || {
        // SAFETY: `system` is a registered VFS, and every one has an `xOpen`. The arguments are
        // those SQLite made for our `xOpen`, under the same contract; `file` has more than the
        // `szOsFile` bytes of `system`.
        unsafe { (*system).xOpen.map_or(ffi::SQLITE_CANTOPEN, |open| open(system, name, file, flags, flags_out)) }
    };
    // SAFETY: SQLite's file names are null or strings that end in a zero and live as long as the
    // file is open.
    let found = unsafe { path_of(name) }.and_then(|path| recording::find(&path));
    let Some((recording, part)) = found else { return open_in_system() };
    match recording.open(part, open_in_system) {
        Ok(recorded) => {
            // SAFETY: the system's `xOpen` has just succeeded on `file`, and no other code knows it
            // yet.
            unsafe { take_place(file, recorded) };
            ffi::SQLITE_OK
        }
        Err(code) => code,
    }
}

/// `xDelete`.
unsafe extern "C" fn delete(_vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    let system = SYSTEM.load(Ordering::Acquire);
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

/// Returns the path of a file name, or `None` if it is null.
///
/// # Safety
/// `name` is null or points to a string that ends in a zero.
unsafe fn path_of(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: it is not null, and the caller promises the rest; the string is copied before this
    // function returns.
    Some(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()).into())
}

/// Replaces four methods of an open file.
///
/// # Safety
/// `file` was opened by the system's VFS, and no other thread uses it yet.
unsafe fn take_place(file: *mut ffi::sqlite3_file, recorded: RecordedFile) {
    // SAFETY: an `xOpen` that succeeds has set `pMethods` to a table that outlives the file; tables
    // are plain data.
    let system = unsafe { (*file).pMethods };
    // SAFETY: see above.
    let copy = unsafe { ptr::read(system) };
    let own = ffi::sqlite3_io_methods {
        // Version 2 excludes `xFetch` and `xUnfetch`, which came with version 3, because a mapped
        // file could change without a recorded operation.
        iVersion: copy.iVersion.min(2),
        xClose: Some(close),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        ..copy
    };
    let methods = Box::into_raw(Box::new(Methods { own, system, file: recorded }));
    // SAFETY: `file` is valid for writes, as SQLite gave it to `xOpen`. The new table lives until
    // `close` frees it, which is the last call on the file. The unix VFS calls its methods by name
    // and never looks at `pMethods` of its own files.
    unsafe { (*file).pMethods = methods.cast() };
    // SAFETY: as above, and `place` is within it.
    unsafe { *place(file) = methods };
}

/// Returns the place of the pointer to a file's methods, behind the system's file.
///
/// # Safety
/// `file` is one that SQLite gave to our `xOpen`.
unsafe fn place(file: *mut ffi::sqlite3_file) -> *mut *mut Methods {
    // SAFETY: `SYSTEM` is a registered VFS, and SQLite made the file as large as our `szOsFile`
    // says, which is larger by one pointer. The system's size is a multiple of a pointer's.
    unsafe { file.cast::<u8>().add((*SYSTEM.load(Ordering::Acquire)).szOsFile as usize).cast() }
}

/// Returns the methods of a file.
///
/// # Safety
/// `file` is one on which [`take_place`] was done and [`close`] was not, and `close` is not called
/// while the returned reference lives.
unsafe fn methods<'a>(file: *mut ffi::sqlite3_file) -> &'a Methods {
    // SAFETY: `take_place` has put there a pointer to a box that is not freed before `close` and to
    // which no mutable reference ever exists.
    unsafe { &**place(file) }
}

/// `xWrite`.
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, data: *const c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: only files of `take_place` have this method, and SQLite does not close a file during
    // another call on it.
    let methods = unsafe { methods(file) };
    // SAFETY: SQLite promises `length` readable bytes at `data` until this call returns, and a
    // length above zero.
    let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), length as usize) };
    methods.file.write(offset as u64, bytes, || {
        // SAFETY: the method of the table that the system gave this very file, with SQLite's own
        // arguments.
        unsafe { (*methods.system).xWrite.map_or(ffi::SQLITE_IOERR, |write| write(file, data, length, offset)) }
    })
}

/// `xTruncate`.
unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: as in `write`.
    let methods = unsafe { methods(file) };
    methods.file.truncate(size as u64, || {
        // SAFETY: as in `write`.
        unsafe { (*methods.system).xTruncate.map_or(ffi::SQLITE_IOERR, |truncate| truncate(file, size)) }
    })
}

/// `xSync`. The disk need not sync, because the recording contains the meaning of a sync.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: as in `write`.
    unsafe { methods(file) }.file.sync();
    ffi::SQLITE_OK
}

/// `xClose`: restores the file's own methods and lets the system close it.
unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: only files of `take_place` have this method, so the pointer came from `Box::into_raw`
    // of a `Methods`. SQLite closes a file once and during no other call on it, so no reference to
    // the box is left and it is freed only here.
    let methods = unsafe { Box::from_raw(*place(file)) };
    // SAFETY: `file` stays SQLite's valid memory until this call returns; the table is the one the
    // system had set.
    unsafe { (*file).pMethods = methods.system };
    // SAFETY: the file is again as the system's VFS left it, and its table outlives it.
    unsafe { (*methods.system).xClose.map_or(ffi::SQLITE_IOERR, |close| close(file)) }
}
