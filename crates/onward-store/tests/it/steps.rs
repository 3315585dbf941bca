//! Counts the steps of SQLite's virtual machine on a file. Unlike time, they are the same on every
//! machine, however busy.
#![expect(unsafe_code, reason = "SQLite says it to C functions; there is no safe way to ask")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use rusqlite::ffi;

/// The counts, by the paths of the files. A count is leaked, because connections to its file may be
/// open until the end of the process.
static COUNTS: Mutex<BTreeMap<String, &AtomicU64>> = Mutex::new(BTreeMap::new());

/// The steps on one file, of every connection of this process that was opened after counting
/// started.
#[derive(Debug)]
pub(crate) struct Steps(&'static AtomicU64);

impl Steps {
    /// Starts counting. Must be called before the file is opened.
    pub(crate) fn of(path: &Path) -> Self {
        static REGISTERED: Once = Once::new();
        // SAFETY: `opened` has the signature that SQLite calls, and is there for ever.
        REGISTERED.call_once(|| assert_eq!(unsafe { ffi::sqlite3_auto_extension(Some(opened)) }, ffi::SQLITE_OK));
        let count: &AtomicU64 = Box::leak(Box::default());
        COUNTS.lock().expect("nobody failed").insert(path.display().to_string(), count);
        Self(count)
    }

    /// Returns the steps so far. Those of a statement count when it has ended.
    pub(crate) fn so_far(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Registers the callback for ended statements, if the steps on the file are counted.
unsafe extern "C" fn opened(
    connection: *mut ffi::sqlite3,
    _: *mut *mut c_char,
    _: *const ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: the connection is open; what is returned is a null pointer or a text that lives as
    // long as it does.
    let path = unsafe {
        let path = ffi::sqlite3_db_filename(connection, c"main".as_ptr());
        if path.is_null() { c"" } else { CStr::from_ptr(path) }
    };
    let count = COUNTS.lock().ok().and_then(|counts| counts.get(&*path.to_string_lossy()).copied());
    let Some(count) = count else { return ffi::SQLITE_OK };
    let context = ptr::from_ref(count).cast_mut().cast();
    // SAFETY: the connection is open, the function has the signature that goes with the event, and
    // the count is never freed.
    unsafe { ffi::sqlite3_trace_v2(connection, ffi::SQLITE_TRACE_PROFILE as c_uint, Some(ended), context) }
}

/// Counts the steps of a statement that has ended.
unsafe extern "C" fn ended(_: c_uint, count: *mut c_void, statement: *mut c_void, _: *mut c_void) -> c_int {
    // SAFETY: `opened` gave a count, which is never freed; with this event comes a statement that
    // is not finalized yet.
    let (count, steps) = unsafe {
        let steps = ffi::sqlite3_stmt_status(statement.cast(), ffi::SQLITE_STMTSTATUS_VM_STEP, 1);
        (&*count.cast::<AtomicU64>(), steps)
    };
    count.fetch_add(u64::from(steps.unsigned_abs()), Ordering::SeqCst);
    ffi::SQLITE_OK
}
