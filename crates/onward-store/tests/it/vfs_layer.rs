//! A VFS on top of the system's, for tests that record or fail what SQLite does with its files.
//!
//! A layer is the system's VFS with some methods of its own. A file to which it attaches a state is
//! the system's own file, with replacements for some methods; all other operations of SQLite on it
//! call the system's method directly. [`register_layer`] makes a layer, and [`attach`] replaces the
//! methods of an open file.
#![expect(unsafe_code, reason = "SQLite's VFS is a table of C functions; there is no safe way to be one")]

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use rusqlite::ffi;

/// The system's VFS. The layers call it instead of the VFS that a method is given,
/// which may be that of another layer on top.
static SYSTEM: LazyLock<AtomicPtr<ffi::sqlite3_vfs>> = LazyLock::new(|| {
    // SAFETY: a null name asks for the default VFS; the call initializes SQLite if need be, and may
    // come from any thread. No layer is registered as the default.
    let system = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
    assert!(!system.is_null(), "SQLite has a VFS of the system");
    AtomicPtr::new(system)
});

/// Returns the system's VFS, which is registered and never unregistered here.
pub(crate) fn system() -> *mut ffi::sqlite3_vfs {
    SYSTEM.load(Ordering::Relaxed)
}

/// The methods of one open file, and the layer's state for it. The file's `pMethods` points to
/// `own`, which is the first field, or to the methods of a layer on top of this one. A pointer to
/// this struct follows the system's file.
#[repr(C)]
pub(crate) struct Methods<T> {
    own: ffi::sqlite3_io_methods,
    pub(crate) system: *const ffi::sqlite3_io_methods,
    pub(crate) state: T,
}

/// Registers a layer with SQLite. `replace` sets its own methods, among them `xOpen`. A layer is
/// registered once in the life of the process.
pub(crate) fn register_layer(name: &'static CStr, replace: impl FnOnce(&mut ffi::sqlite3_vfs)) {
    // SAFETY: the system's VFS is registered and so valid for reads; the struct is plain data and
    // may be copied.
    let mut layer = unsafe { ptr::read(system()) };
    layer.zName = name.as_ptr();
    layer.szOsFile += size_of::<*mut ()>() as c_int;
    layer.pNext = ptr::null_mut();
    replace(&mut layer);
    let layer = Box::into_raw(Box::new(layer));
    // SAFETY: a registered VFS must stay valid, and belongs to SQLite from here on: the box is
    // leaked and not touched by Rust again. It is a whole VFS: the methods that were not replaced
    // are the system's and find in it the `pAppData` and `mxPathname` that they would find in their
    // own, and its files have room for the system's.
    let code = unsafe { ffi::sqlite3_vfs_register(layer, 0) };
    assert_eq!(code, ffi::SQLITE_OK, "the layer can be registered");
}

/// Opens a file in the system's VFS.
///
/// # Safety
/// The arguments are those that SQLite gave to the `xOpen` of a layer.
pub(crate) unsafe fn open_in_system(
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    let system = system();
    // SAFETY: `system` is a registered VFS, and every one has an `xOpen`. The caller promises the
    // arguments, whose contract is the same; `file` has more than the `szOsFile` bytes of `system`.
    unsafe { (*system).xOpen.map_or(ffi::SQLITE_CANTOPEN, |open| open(system, name, file, flags, flags_out)) }
}

/// Returns the path of a file name, or `None` if it is null.
///
/// # Safety
/// `name` is null or points to a string that ends in a zero.
pub(crate) unsafe fn path_of(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: it is not null, and the caller promises the rest; the string is copied before this
    // function returns.
    Some(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()).into())
}

/// Attaches a state to an open file and replaces the methods that `replace` sets.
///
/// # Safety
/// `file` was opened by [`open_in_system`], and no other thread uses it yet. The methods that
/// `replace` sets keep SQLite's contract, and read the state with the same `T`.
pub(crate) unsafe fn attach<T>(
    file: *mut ffi::sqlite3_file,
    state: T,
    replace: impl FnOnce(&mut ffi::sqlite3_io_methods),
) {
    // SAFETY: an `xOpen` that succeeds has set `pMethods` to a table that outlives the file; tables
    // are plain data.
    let system = unsafe { (*file).pMethods };
    // SAFETY: see above.
    let mut own = unsafe { ptr::read(system) };
    // Version 2 excludes `xFetch` and `xUnfetch`, which came with version 3, because a mapped file
    // is read and changed without calling a method.
    own.iVersion = own.iVersion.min(2);
    replace(&mut own);
    own.xClose = Some(close::<T>);
    let methods = Box::into_raw(Box::new(Methods { own, system, state }));
    // SAFETY: `file` is valid for writes, as SQLite gave it to `xOpen`. The new table lives until
    // `close` frees it, which is the last call on the file. The unix VFS calls its methods by name
    // and never looks at `pMethods` of its own files.
    unsafe { (*file).pMethods = methods.cast() };
    // SAFETY: as above, and the pointer is within the file.
    unsafe { *attached(file) = methods };
}

/// Returns the address of the pointer to a file's methods, behind the system's file.
///
/// # Safety
/// `file` is one that SQLite gave to the `xOpen` of a layer.
unsafe fn attached<T>(file: *mut ffi::sqlite3_file) -> *mut *mut Methods<T> {
    // SAFETY: SQLite made the file as large as the layer's `szOsFile`, which is larger than the
    // system's by one pointer. The system's size is a multiple of a pointer's.
    unsafe { file.cast::<u8>().add((*system()).szOsFile as usize).cast() }
}

/// Returns the methods of a file.
///
/// # Safety
/// `file` is one to which [`attach`] attached a `T`. It is not closed while the returned reference
/// lives: SQLite does not close a file during another call on it.
pub(crate) unsafe fn methods<'a, T>(file: *mut ffi::sqlite3_file) -> &'a Methods<T> {
    // SAFETY: `attach` has put there a pointer to a box that is not freed before `close` and to
    // which no mutable reference ever exists.
    unsafe { &**attached(file) }
}

/// `xClose`: restores the file's own methods and lets the system close it.
unsafe extern "C" fn close<T>(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: only files of `attach` have this method, so the pointer came from `Box::into_raw` of
    // a `Methods<T>`. SQLite closes a file once and during no other call on it, so no reference to
    // the box is left and it is freed only here.
    let methods = unsafe { Box::from_raw(*attached::<T>(file)) };
    // SAFETY: `file` stays SQLite's valid memory until this call returns; the table is the one the
    // system had set.
    unsafe { (*file).pMethods = methods.system };
    // SAFETY: the file is again as the system's VFS left it, and its table outlives it.
    unsafe { (*methods.system).xClose.map_or(ffi::SQLITE_IOERR, |close| close(file)) }
}
