//! The VFS of the layer, as SQLite sees it.
//!
//! It is a copy of the system's VFS with another `xOpen`. A database file or log that this opens is
//! a file of the system's VFS with some methods replaced. Everything else (locks, shared memory,
//! other files) is the system's.
//!
//! Nothing here may panic: the callers are C functions.
#![expect(unsafe_code, reason = "SQLite's VFS is a table of C functions; there is no safe way to be one")]

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use rusqlite::{Connection, ffi};

use super::{database_file, log_file};
use crate::api::error::{Error, Result};

/// The name under which the layer is registered with SQLite.
pub(in crate::sqlite) const NAME: &str = "onward";

/// The name of the layer that verifies checksums.
const C_NAME: &CStr = c"onward";

/// The name of the layer that does not verify checksums, and writes pages with checksums.
pub(in crate::sqlite) const TRUSTING_NAME: &str = "onward-trusting";

/// `TRUSTING_NAME` as a C string.
const C_TRUSTING_NAME: &CStr = c"onward-trusting";

/// The layer. SQLite has a pointer to `own`, which is the first field, and passes it to `open`.
#[repr(C)]
struct Layer {
    /// The VFS that is registered with SQLite.
    own: ffi::sqlite3_vfs,
    /// The VFS of the system.
    system: *mut ffi::sqlite3_vfs,
    /// True if checksums are verified.
    looks: bool,
}

/// Registers the layer with SQLite, once per process. It is not the default VFS: only connections
/// that name it use it.
///
/// # Errors
/// If SQLite has no VFS of the system, or no memory.
pub(in crate::sqlite) fn register() -> Result<()> {
    static CODE: OnceLock<c_int> = OnceLock::new();
    let register = || match register_as(C_NAME, None, true) {
        ffi::SQLITE_OK => register_as(C_TRUSTING_NAME, None, false),
        code => code,
    };
    taken(*CODE.get_or_init(register))
}

/// Returns the name of the layer on top of another VFS, or of the system's if none is named. The
/// other VFS gets calls of `xOpen` with itself, and of its other methods with the layer. It must
/// not expect its own table in a file's `pMethods`.
///
/// # Errors
/// If SQLite knows no such VFS, or has no memory.
pub(in crate::sqlite) fn over(vfs: Option<&str>) -> Result<Cow<'static, str>> {
    static REGISTERED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    register()?;
    let Some(vfs) = vfs else { return Ok(NAME.into()) };
    let name = format!("{NAME}-over-{vfs}");
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if !registered.contains(&name) {
        let no_name = |_| Error::invalid(format!("no VFS can have the name `{vfs}`"));
        let (below, c_name) = (CString::new(vfs).map_err(no_name)?, CString::new(&*name).map_err(no_name)?);
        taken(register_as(Box::leak(c_name.into_boxed_c_str()), Some(&below), true))?;
        registered.push(name.clone());
    }
    Ok(name.into())
}

/// Returns the error for a registration that SQLite rejected.
fn taken(code: c_int) -> Result<()> {
    match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(Error::io(format!("SQLite did not take the layer below it (code {code})"))),
    }
}

/// Registers the layer above another VFS, and returns SQLite's code.
fn register_as(name: &'static CStr, below: Option<&CStr>, looks: bool) -> c_int {
    // SAFETY: a null name asks for the default VFS, and another is a string that ends in a zero;
    // the call initializes SQLite if need be, and may come from any thread.
    let system = unsafe { ffi::sqlite3_vfs_find(below.map_or(ptr::null(), CStr::as_ptr)) };
    if system.is_null() {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: `sqlite3_vfs_find` returned a pointer other than null, which is a registered VFS. No
    // VFS is ever unregistered here, so it is valid for reads; the struct is plain data and may be
    // copied.
    let copy = unsafe { ptr::read(system) };
    let own = ffi::sqlite3_vfs { zName: name.as_ptr(), pNext: ptr::null_mut(), xOpen: Some(open), ..copy };
    let layer = Box::into_raw(Box::new(Layer { own, system, looks }));
    // SAFETY: a registered VFS must stay valid, and belongs to SQLite from here on: the box is
    // leaked and not touched by Rust again but to read `system`, which SQLite does not know. `own`
    // is the first field of a `repr(C)` struct, so the pointers are equal. It is a whole VFS: the
    // methods that were not replaced are the system's and find in it the `pAppData`, `szOsFile` and
    // `mxPathname` that they would find in their own.
    unsafe { ffi::sqlite3_vfs_register(layer.cast(), 0) }
}

/// Reserves room for checksums in the pages of a file. It must be called before the first page is
/// written. Later it only affects what `VACUUM INTO` writes.
///
/// # Errors
/// If SQLite does not know the request.
pub(in crate::sqlite) fn reserve(connection: &Connection, bytes: u8) -> Result<()> {
    control_reserved(connection, c_int::from(bytes)).map(drop)
}

/// Returns the number of bytes at the end of each page that SQLite does not use. It must be called
/// after the first read of the file.
///
/// # Errors
/// If SQLite does not know the request.
pub(in crate::sqlite) fn reserved(connection: &Connection) -> Result<u8> {
    // A value that is no number of bytes changes nothing.
    Ok(u8::try_from(control_reserved(connection, -1)?).unwrap_or(u8::MAX))
}

/// Reads and sets the number of reserved bytes at the end of a page; a negative number only reads
/// it.
fn control_reserved(connection: &Connection, mut bytes: c_int) -> Result<c_int> {
    // SAFETY: the connection is open as long as it is borrowed, and only this thread uses it during
    // the call. The request takes a pointer to an `int`, which is read and written during the call
    // only.
    let code = unsafe {
        let argument = (&raw mut bytes).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_RESERVE_BYTES, argument)
    };
    match code {
        ffi::SQLITE_OK => Ok(bytes),
        code => Err(Error::io(format!("SQLite does not tell of room for checksums (code {code})"))),
    }
}

/// Returns true if a connection reads and writes through the layer.
pub(in crate::sqlite) fn goes_through_layer(connection: &Connection) -> bool {
    let mut vfs: *mut ffi::sqlite3_vfs = ptr::null_mut();
    // SAFETY: as in `control_reserved`; this request takes a pointer to a pointer to a VFS.
    let code = unsafe {
        let argument = (&raw mut vfs).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_VFS_POINTER, argument)
    };
    if code != ffi::SQLITE_OK || vfs.is_null() {
        return false;
    }
    // SAFETY: the VFS of an open connection is registered, and so is its name a string that ends in
    // a zero; it is compared before this function returns.
    unsafe { CStr::from_ptr((*vfs).zName) == C_NAME }
}

/// `xOpen`: opens the system's file and, if it is a database or a log, takes the place of its
/// methods.
unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls with the VFS that was registered, which is the first field of a `Layer`
    // that is never freed and never changed.
    let &Layer { system, looks, .. } = unsafe { &*vfs.cast::<Layer>() };
    // SAFETY: `system` is a registered VFS, and every one has an `xOpen`. The arguments are those
    // SQLite made for our `xOpen`, under the same contract; `file` has `szOsFile` bytes, which is
    // copied from `system`.
    let code =
        unsafe { (*system).xOpen.map_or(ffi::SQLITE_CANTOPEN, |open| open(system, name, file, flags, flags_out)) };
    if code == ffi::SQLITE_OK && flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        // SAFETY: the system's `xOpen` has just succeeded on `file`, and no other code knows it
        // yet.
        unsafe { database_file::take_place(file, looks) };
    }
    if code == ffi::SQLITE_OK && flags & ffi::SQLITE_OPEN_WAL != 0 {
        // SAFETY: as above. SQLite opens a log by the name that it made for it, while the database
        // file to which it belongs is open, and through the same VFS, so that `take_place` was done
        // on that.
        unsafe { log_file::take_place(file, ffi::sqlite3_database_file_object(name)) };
    }
    code
}
