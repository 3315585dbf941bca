//! The layer between SQLite and the disk.
//!
//! The layer is the system's VFS with its own `xOpen` and `xSleep`. The files of a store with a
//! plan are the system's own files, with replacements for the methods that can fail. Files are not
//! synced, because these tests do not cut the power.
#![expect(unsafe_code, reason = "SQLite's VFS is a table of C functions; there is no safe way to be one")]

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use rusqlite::ffi;

use super::plan::{self, Operation, Plan};

/// The name of the layer in SQLite.
pub(super) const NAME: &str = "onward-nth-failure";

const C_NAME: &CStr = c"onward-nth-failure";

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
    plan: Arc<Plan>,
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
            xSleep: Some(pause),
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

/// `xOpen`: opens the system's file and, if its store has a plan, replaces the file's methods.
unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    let system = SYSTEM.load(Ordering::Acquire);
    // SAFETY: `system` is a registered VFS, and every one has an `xOpen`. The arguments are those
    // SQLite made for our `xOpen`, under the same contract; `file` has more than the `szOsFile`
    // bytes of `system`.
    let code =
        unsafe { (*system).xOpen.map_or(ffi::SQLITE_CANTOPEN, |open| open(system, name, file, flags, flags_out)) };
    // SAFETY: SQLite's file names are null or strings that end in a zero and live as long as the
    // file is open.
    let plan = unsafe { path_of(name) }.and_then(|path| plan::find(&path));
    if let Some(plan) = plan.filter(|_| code == ffi::SQLITE_OK) {
        // SAFETY: the system's `xOpen` has just succeeded on `file`, and no other code knows it
        // yet.
        unsafe { take_place(file, plan) };
    }
    code
}

/// `xSleep`.
unsafe extern "C" fn pause(_vfs: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    if plan::wait(Duration::from_micros(u64::from(microseconds.unsigned_abs()))) {
        return microseconds;
    }
    let system = SYSTEM.load(Ordering::Acquire);
    // SAFETY: `system` is a registered VFS; a number may be passed on.
    unsafe { (*system).xSleep.map_or(0, |pause| pause(system, microseconds)) }
}

/// Returns the path of a file name, or `None` if it is null.
///
/// # Safety
/// `name` is null or points to a string that ends in a zero.
unsafe fn path_of(name: ffi::sqlite3_filename) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: it is not null, and the caller promises the rest; the string is copied before this
    // function returns.
    Some(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()).into())
}

/// Replaces the methods of an open file that can fail.
///
/// # Safety
/// `file` was opened by the system's VFS, and no other thread uses it yet.
unsafe fn take_place(file: *mut ffi::sqlite3_file, plan: Arc<Plan>) {
    // SAFETY: an `xOpen` that succeeds has set `pMethods` to a table that outlives the file; tables
    // are plain data.
    let system = unsafe { (*file).pMethods };
    // SAFETY: see above.
    let copy = unsafe { ptr::read(system) };
    let own = ffi::sqlite3_io_methods {
        // Version 2 excludes `xFetch` and `xUnfetch`, which came with version 3, because a mapped
        // file is read without calling a method.
        iVersion: copy.iVersion.min(2),
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        xLock: Some(lock),
        xShmMap: Some(map_memory),
        xShmLock: Some(lock_memory),
        ..copy
    };
    let methods = Box::into_raw(Box::new(Methods { own, system, plan }));
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

/// `xRead`.
unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, data: *mut c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: only files of `take_place` have this method, and SQLite does not close a file during
    // another call on it.
    let methods = unsafe { methods(file) };
    methods.plan.failure(Operation::Read).unwrap_or_else(|| {
        // SAFETY: the method of the table that the system gave this very file, with SQLite's own
        // arguments.
        unsafe { (*methods.system).xRead.map_or(ffi::SQLITE_IOERR, |read| read(file, data, length, offset)) }
    })
}

/// `xWrite`. A write that fails has written half of its bytes.
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, data: *const c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: as in `read`.
    let methods = unsafe { methods(file) };
    let failure = methods.plan.failure(Operation::Write);
    let length = if failure.is_some() { (length / 2).max(1) } else { length };
    // SAFETY: as in `read`; fewer of the bytes that SQLite gave, and never none of them, are as
    // good as all.
    let code = unsafe { (*methods.system).xWrite.map_or(ffi::SQLITE_IOERR, |write| write(file, data, length, offset)) };
    failure.unwrap_or(code)
}

/// `xTruncate`.
unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: as in `read`.
    let methods = unsafe { methods(file) };
    methods.plan.failure(Operation::Truncate).unwrap_or_else(|| {
        // SAFETY: as in `read`.
        unsafe { (*methods.system).xTruncate.map_or(ffi::SQLITE_IOERR, |truncate| truncate(file, size)) }
    })
}

/// `xSync`.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: as in `read`.
    unsafe { methods(file) }.plan.failure(Operation::Sync).unwrap_or(ffi::SQLITE_OK)
}

/// `xLock`.
unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: as in `read`.
    let methods = unsafe { methods(file) };
    methods.plan.failure(Operation::Lock).unwrap_or_else(|| {
        // SAFETY: as in `read`.
        unsafe { (*methods.system).xLock.map_or(ffi::SQLITE_IOERR, |lock| lock(file, level)) }
    })
}

/// `xShmMap`. It can fail only when it makes the memory larger.
unsafe extern "C" fn map_memory(
    file: *mut ffi::sqlite3_file,
    page: c_int,
    size: c_int,
    extend: c_int,
    memory: *mut *mut c_void,
) -> c_int {
    // SAFETY: as in `read`.
    let methods = unsafe { methods(file) };
    let failure = (extend != 0).then(|| methods.plan.failure(Operation::MapMemory)).flatten();
    failure.unwrap_or_else(|| {
        // SAFETY: as in `read`.
        unsafe { (*methods.system).xShmMap.map_or(ffi::SQLITE_IOERR, |map| map(file, page, size, extend, memory)) }
    })
}

/// `xShmLock`, which also unlocks. Unlocking never fails.
unsafe extern "C" fn lock_memory(file: *mut ffi::sqlite3_file, first: c_int, count: c_int, flags: c_int) -> c_int {
    // SAFETY: as in `read`.
    let methods = unsafe { methods(file) };
    let takes = flags & ffi::SQLITE_SHM_LOCK != 0;
    let failure = takes.then(|| methods.plan.failure(Operation::LockMemory)).flatten();
    failure.unwrap_or_else(|| {
        // SAFETY: as in `read`.
        unsafe { (*methods.system).xShmLock.map_or(ffi::SQLITE_IOERR, |lock| lock(file, first, count, flags)) }
    })
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
