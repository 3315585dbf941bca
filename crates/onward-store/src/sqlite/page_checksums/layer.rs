//! The layer between SQLite and the file system.
//!
//! It is the system's VFS, of which `xOpen` is replaced; and database files are the system's own files, of whose methods those that read
//! and write are replaced. All else (locks, shared memory, syncs, other files) is the system's.
//!
//! Nothing here may panic: the callers are C functions.
#![expect(unsafe_code, reason = "SQLite's VFS is a table of C functions; there is no safe way to be one")]

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use rusqlite::{Connection, ffi};

use super::page::{Pages, is_intact, is_sealed, seal};
use crate::error::{Error, Result};

/// The name under which SQLite knows the layer.
pub(in crate::sqlite) const NAME: &str = "onward";

const C_NAME: &CStr = c"onward";

/// The name under which SQLite knows the layer that takes pages as they are, and writes them with checksums all the same.
pub(in crate::sqlite) const TRUSTING_NAME: &str = "onward-trusting";

const C_TRUSTING_NAME: &CStr = c"onward-trusting";

/// The layer. SQLite has a pointer to `own`, which is the first field, and hands it back to `open`.
#[repr(C)]
struct Layer {
    own: ffi::sqlite3_vfs,
    system: *mut ffi::sqlite3_vfs,
    /// Whether checksums are looked at.
    looks: bool,
}

/// The methods of one open database file. The file's `pMethods` points to `own`, which is the first field. SQLite uses a file in one thread
/// at a time.
#[repr(C)]
struct Methods {
    own: ffi::sqlite3_io_methods,
    system: *const ffi::sqlite3_io_methods,
    /// Whether checksums are looked at.
    looks: bool,
    /// What is known of the file's pages. A file that has none yet says nothing.
    pages: Cell<Option<Pages>>,
    /// Up to where pages were written before the first one was, which says what they are: SQLite may do so while it writes a file anew.
    early: Cell<i64>,
    /// Where a page gets its checksum, since what SQLite hands over is not to be written to.
    sealed: RefCell<Vec<u8>>,
}

/// Makes the layer known to SQLite, once in the life of the process. It is not the default: only what asks for its name goes through it.
///
/// # Errors
/// If SQLite has no VFS of the system, or no memory.
pub(in crate::sqlite) fn register() -> Result<()> {
    static CODE: OnceLock<c_int> = OnceLock::new();
    let register = || match register_as(C_NAME, true) {
        ffi::SQLITE_OK => register_as(C_TRUSTING_NAME, false),
        code => code,
    };
    match *CODE.get_or_init(register) {
        ffi::SQLITE_OK => Ok(()),
        code => Err(Error::io(format!("SQLite did not take the layer that looks at pages (code {code})"))),
    }
}

fn register_as(name: &'static CStr, looks: bool) -> c_int {
    // SAFETY: a null name asks for the default VFS; the call initializes SQLite if need be, and may come from any thread.
    let system = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
    if system.is_null() {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: what `sqlite3_vfs_find` answers, other than null, is a registered VFS. The system's are never unregistered, so it is valid for
    // reads; the struct is plain data and may be copied.
    let copy = unsafe { ptr::read(system) };
    let own = ffi::sqlite3_vfs { zName: name.as_ptr(), pNext: ptr::null_mut(), xOpen: Some(open), ..copy };
    let layer = Box::into_raw(Box::new(Layer { own, system, looks }));
    // SAFETY: a registered VFS must stay valid, and belongs to SQLite from here on: the box is leaked and not touched by Rust again but to
    // read `system`, which SQLite does not know. `own` is the first field of a `repr(C)` struct, so the pointers are equal. It is a whole
    // VFS: the methods that were not replaced are the system's and find in it the `pAppData`, `szOsFile` and `mxPathname` that they would
    // find in their own.
    unsafe { ffi::sqlite3_vfs_register(layer.cast(), 0) }
}

/// Has the pages of a file get checksums. To be called before the first page is written, and without effect later, but on what
/// `VACUUM INTO` writes.
///
/// # Errors
/// If SQLite does not know the request.
pub(in crate::sqlite) fn reserve(connection: &Connection, bytes: u8) -> Result<()> {
    control_reserved(connection, c_int::from(bytes)).map(drop)
}

/// How many bytes at the end of each page of a file are not SQLite's own. To be called when the file was read.
///
/// # Errors
/// If SQLite does not know the request.
pub(in crate::sqlite) fn reserved(connection: &Connection) -> Result<u8> {
    // What is no number of bytes changes nothing.
    Ok(u8::try_from(control_reserved(connection, -1)?).unwrap_or(u8::MAX))
}

fn control_reserved(connection: &Connection, mut bytes: c_int) -> Result<c_int> {
    // SAFETY: the connection is open as long as it is borrowed, and used by this thread alone meanwhile; the request takes a pointer to an
    // `int`, which is read and written during the call only.
    let code = unsafe {
        let argument = (&raw mut bytes).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_RESERVE_BYTES, argument)
    };
    match code {
        ffi::SQLITE_OK => Ok(bytes),
        code => Err(Error::io(format!("SQLite does not tell of room for checksums (code {code})"))),
    }
}

/// Whether what a connection reads and writes goes through the layer.
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
    // SAFETY: the VFS of an open connection is registered, and so is its name a string that ends in a zero; it is compared before
    // this function returns.
    unsafe { CStr::from_ptr((*vfs).zName) == C_NAME }
}

/// `xOpen`: opens the system's file and, if it is a database, takes the place of its methods.
unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls with the VFS that was registered, which is the first field of a `Layer` that is never freed and never changed.
    let &Layer { system, looks, .. } = unsafe { &*vfs.cast::<Layer>() };
    // SAFETY: `system` is a registered VFS, and every one has an `xOpen`. The arguments are those SQLite made for our `xOpen`, under the same
    // contract; `file` has `szOsFile` bytes, which is copied from `system`.
    let code =
        unsafe { (*system).xOpen.map_or(ffi::SQLITE_CANTOPEN, |open| open(system, name, file, flags, flags_out)) };
    if code == ffi::SQLITE_OK && flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        // SAFETY: the system's `xOpen` has just succeeded on `file`, and nobody else knows it yet.
        unsafe { take_place(file, looks) };
    }
    code
}

/// Replaces the methods of an open file that read and write.
///
/// # Safety
/// `file` was opened by the system's VFS, and no other thread uses it yet.
unsafe fn take_place(file: *mut ffi::sqlite3_file, looks: bool) {
    // SAFETY: an `xOpen` that succeeds has set `pMethods` to a table that outlives the file; tables are plain data.
    let system = unsafe { (*file).pMethods };
    // SAFETY: see above.
    let copy = unsafe { ptr::read(system) };
    let own = ffi::sqlite3_io_methods {
        // Without `xFetch` and `xUnfetch`, which came with version 3: a mapping is read without asking.
        iVersion: copy.iVersion.min(2),
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        ..copy
    };
    let methods =
        Methods { own, system, looks, pages: Cell::new(None), early: Cell::new(0), sealed: RefCell::default() };
    // SAFETY: `file` is valid for writes, as SQLite gave it to `xOpen`. The new table lives until `close` frees it, which is the last call on
    // the file. The unix VFS calls its methods by name and never looks at `pMethods` of its own files.
    unsafe { (*file).pMethods = Box::into_raw(Box::new(methods)).cast() };
}

/// # Safety
/// `file` is one on which [`take_place`] was done and [`close`] was not, and `close` is not called while the answer lives.
unsafe fn methods<'a>(file: *mut ffi::sqlite3_file) -> &'a Methods {
    // SAFETY: `pMethods` was set by `take_place` to the first field of a `repr(C)` `Methods` in a box, which is not freed before `close` and
    // of which nobody ever has a mutable reference. SQLite uses a file in one thread at a time, so the cells in it are not raced for.
    unsafe { &*(*file).pMethods.cast::<Methods>() }
}

impl Methods {
    /// The system's `xRead`.
    ///
    /// # Safety
    /// `file` is the file of these methods, and `data` is valid for writes of `length` bytes.
    unsafe fn read(&self, file: *mut ffi::sqlite3_file, data: *mut c_void, length: c_int, offset: i64) -> c_int {
        // SAFETY: the method of the table that the system gave this very file; the caller promises the rest.
        unsafe { (*self.system).xRead.map_or(ffi::SQLITE_IOERR, |read| read(file, data, length, offset)) }
    }

    /// The system's `xWrite`.
    ///
    /// # Safety
    /// `file` is the file of these methods, and `data` is valid for reads of `length` bytes.
    unsafe fn write(&self, file: *mut ffi::sqlite3_file, data: *const c_void, length: c_int, offset: i64) -> c_int {
        // SAFETY: as in `read`.
        unsafe { (*self.system).xWrite.map_or(ffi::SQLITE_IOERR, |write| write(file, data, length, offset)) }
    }

    /// Looks at the header of the file, if it has one, unless that was done.
    ///
    /// # Safety
    /// `file` is the file of these methods.
    unsafe fn look(&self, file: *mut ffi::sqlite3_file) -> c_int {
        if self.pages.get().is_some() {
            return ffi::SQLITE_OK;
        }
        let mut header = [0; Pages::HEADER];
        // SAFETY: the caller promises the file; the array is as long as is said.
        match unsafe { self.read(file, header.as_mut_ptr().cast(), Pages::HEADER as c_int, 0) } {
            ffi::SQLITE_OK => self.pages.set(Pages::of_header(&header)),
            ffi::SQLITE_IOERR_SHORT_READ => {}
            code => return code,
        }
        ffi::SQLITE_OK
    }

    /// The number of the page that is read or written; `None` if it is not exactly one that has a checksum.
    fn checked_page(&self, length: usize, offset: i64) -> Option<u64> {
        let Some(Pages::Checked(size)) = self.pages.get() else { return None };
        let offset = u64::try_from(offset).ok()?;
        (length == size && offset % size as u64 == 0).then(|| offset / size as u64 + 1)
    }

    /// Writes a page, with its checksum if it has one.
    ///
    /// # Safety
    /// `file` is the file of these methods.
    unsafe fn write_page(&self, file: *mut ffi::sqlite3_file, page: &[u8], offset: i64) -> c_int {
        let Ok(length) = c_int::try_from(page.len()) else { return ffi::SQLITE_IOERR_WRITE };
        let Some(number) = self.checked_page(page.len(), offset) else {
            // SAFETY: the caller promises the file; a slice is valid for reads of its length.
            return unsafe { self.write(file, page.as_ptr().cast(), length, offset) };
        };
        let Ok(mut sealed) = self.sealed.try_borrow_mut() else { return ffi::SQLITE_IOERR_WRITE };
        sealed.clear();
        sealed.extend_from_slice(page);
        seal(&mut sealed, number);
        // SAFETY: as above.
        unsafe { self.write(file, sealed.as_ptr().cast(), length, offset) }
    }

    /// Gives the pages their checksums that were written before it was known that they have any.
    ///
    /// # Safety
    /// `file` is the file of these methods.
    unsafe fn seal_early(&self, file: *mut ffi::sqlite3_file) -> c_int {
        let end = self.early.take();
        let Some(Pages::Checked(size)) = self.pages.get() else { return ffi::SQLITE_OK };
        let mut page = vec![0; size];
        for offset in (0..end).step_by(size).skip(1) {
            // SAFETY: the caller promises the file; the buffer is one page long.
            let mut code = unsafe { self.read(file, page.as_mut_ptr().cast(), size as c_int, offset) };
            if code == ffi::SQLITE_OK {
                // SAFETY: the caller promises the file.
                code = unsafe { self.write_page(file, &page, offset) };
            }
            if code != ffi::SQLITE_OK {
                return code;
            }
        }
        ffi::SQLITE_OK
    }

    /// Learns from the beginning of the file, which is read or written, what its pages are.
    fn learn(&self, data: &[u8], offset: i64) {
        if offset == 0
            && let Some(pages) = Pages::of_header(data)
        {
            self.pages.set(Some(pages));
        }
    }
}

/// `xRead`: the system's, and a page that is not as it was sealed is an error.
unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, data: *mut c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: only files of `take_place` have this method, and SQLite does not close a file during another call on it.
    let methods = unsafe { methods(file) };
    // SAFETY: SQLite's own arguments.
    let code = unsafe { methods.read(file, data, length, offset) };
    // What is shorter than a page is filled with zeros, and said to be short: nothing to look at.
    let (ffi::SQLITE_OK, Ok(bytes)) = (code, usize::try_from(length)) else { return code };
    // SAFETY: the read that just succeeded has written `length` bytes there; nobody else has the buffer until this returns.
    let page = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
    methods.learn(page, offset);
    // SAFETY: `methods` are those of `file`.
    let looked = unsafe { methods.look(file) };
    if looked != ffi::SQLITE_OK {
        return looked;
    }
    let is_damaged = match methods.checked_page(bytes, offset) {
        Some(number) => !is_intact(page, number),
        None => offset == 0 && is_sealed(page),
    };
    if methods.looks && is_damaged { ffi::SQLITE_IOERR_DATA } else { code }
}

/// `xWrite`: the system's, of the page with its checksum.
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, data: *const c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: as in `read`.
    let methods = unsafe { methods(file) };
    let Ok(bytes) = usize::try_from(length) else { return ffi::SQLITE_IOERR_WRITE };
    // SAFETY: SQLite gave a buffer of `length` bytes, which nobody changes until this returns.
    let page = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
    methods.learn(page, offset);
    // SAFETY: `methods` are those of `file`.
    let looked = unsafe { methods.look(file) };
    if looked != ffi::SQLITE_OK {
        return looked;
    }
    // SAFETY: see above.
    let code = unsafe { methods.write_page(file, page, offset) };
    if methods.pages.get().is_none() {
        methods.early.set(methods.early.get().max(offset.saturating_add(length.into())));
    } else if code == ffi::SQLITE_OK && methods.early.get() > 0 {
        // SAFETY: see above.
        return unsafe { methods.seal_early(file) };
    }
    code
}

/// `xClose`: gives the file its own methods back and has the system close it.
unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: only files of `take_place` have this method, so `pMethods` came from `Box::into_raw` of a `Methods`. SQLite closes a file once
    // and during no other call on it, so no reference to the box is left and it is freed only here.
    let methods = unsafe { Box::from_raw((*file).pMethods.cast_mut().cast::<Methods>()) };
    // SAFETY: `file` stays SQLite's valid memory until this call returns; the table is the one the system had set.
    unsafe { (*file).pMethods = methods.system };
    // SAFETY: the file is again as the system's VFS left it, and its table outlives it.
    unsafe { (*methods.system).xClose.map_or(ffi::SQLITE_IOERR, |close| close(file)) }
}
