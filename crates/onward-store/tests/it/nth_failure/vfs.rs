//! The layer between SQLite and the disk, which fails operations.
//!
//! It replaces `xOpen` and `xSleep` of the system's VFS, and the methods that can fail of the files
//! of a store with a plan. Files are not synced, because these tests do not cut the power.
#![expect(unsafe_code, reason = "SQLite's VFS is a table of C functions; there is no safe way to be one")]

use std::ffi::{CStr, c_int, c_void};
use std::sync::{Arc, Once};
use std::time::Duration;

use rusqlite::ffi;

use super::plan::{self, Operation, Plan};
use crate::vfs_layer::{Methods, attach, open_in_system, path_of, register_layer, system};

/// The name of the layer in SQLite.
pub(super) const NAME: &str = "onward-nth-failure";

const C_NAME: &CStr = c"onward-nth-failure";

/// Registers the layer with SQLite, once in the life of the process.
pub(super) fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        register_layer(C_NAME, |layer| {
            layer.xOpen = Some(open);
            layer.xSleep = Some(pause);
        });
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
    // SAFETY: the arguments are those of this `xOpen`.
    let code = unsafe { open_in_system(name, file, flags, flags_out) };
    // SAFETY: SQLite's file names are null or strings that end in a zero and live as long as the
    // file is open.
    let plan = unsafe { path_of(name) }.and_then(|path| plan::find(&path));
    if let Some(plan) = plan.filter(|_| code == ffi::SQLITE_OK) {
        // SAFETY: the system's `xOpen` has just succeeded on `file`, and no other code knows it
        // yet. The replacements read an `Arc<Plan>`.
        unsafe { attach(file, plan, replace_methods) };
    }
    code
}

/// `xSleep`.
unsafe extern "C" fn pause(_vfs: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    if plan::wait(Duration::from_micros(u64::from(microseconds.unsigned_abs()))) {
        return microseconds;
    }
    let system = system();
    // SAFETY: `system` is a registered VFS; a number may be passed on.
    unsafe { (*system).xSleep.map_or(0, |pause| pause(system, microseconds)) }
}

/// Replaces the methods that can fail.
fn replace_methods(methods: &mut ffi::sqlite3_io_methods) {
    methods.xRead = Some(read);
    methods.xWrite = Some(write);
    methods.xTruncate = Some(truncate);
    methods.xSync = Some(sync);
    methods.xLock = Some(lock);
    methods.xShmMap = Some(map_memory);
    methods.xShmLock = Some(lock_memory);
}

/// Returns the methods and the plan of a file.
///
/// # Safety
/// As for [`vfs_layer::methods`](crate::vfs_layer::methods), of a file of a store with a plan.
unsafe fn methods<'a>(file: *mut ffi::sqlite3_file) -> &'a Methods<Arc<Plan>> {
    // SAFETY: the caller promises it; every such file has an `Arc<Plan>`.
    unsafe { crate::vfs_layer::methods(file) }
}

/// `xRead`.
unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, data: *mut c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: only files of a store with a plan have this method, and SQLite does not close a file
    // during another call on it.
    let methods = unsafe { methods(file) };
    methods.state.failure(Operation::Read).unwrap_or_else(|| {
        // SAFETY: the method of the table that the system gave this very file, with SQLite's own
        // arguments.
        unsafe { (*methods.system).xRead.map_or(ffi::SQLITE_IOERR, |read| read(file, data, length, offset)) }
    })
}

/// `xWrite`. A write that fails has written half of its bytes.
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, data: *const c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: as in `read`.
    let methods = unsafe { methods(file) };
    let failure = methods.state.failure(Operation::Write);
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
    methods.state.failure(Operation::Truncate).unwrap_or_else(|| {
        // SAFETY: as in `read`.
        unsafe { (*methods.system).xTruncate.map_or(ffi::SQLITE_IOERR, |truncate| truncate(file, size)) }
    })
}

/// `xSync`.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: as in `read`.
    unsafe { methods(file) }.state.failure(Operation::Sync).unwrap_or(ffi::SQLITE_OK)
}

/// `xLock`.
unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: as in `read`.
    let methods = unsafe { methods(file) };
    methods.state.failure(Operation::Lock).unwrap_or_else(|| {
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
    let failure = (extend != 0).then(|| methods.state.failure(Operation::MapMemory)).flatten();
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
    let failure = takes.then(|| methods.state.failure(Operation::LockMemory)).flatten();
    failure.unwrap_or_else(|| {
        // SAFETY: as in `read`.
        unsafe { (*methods.system).xShmLock.map_or(ffi::SQLITE_IOERR, |lock| lock(file, first, count, flags)) }
    })
}
