//! A database file whose pages get checksums when they are written, and are verified when they are
//! read.
//!
//! Nothing here may panic: the callers are C functions.
#![expect(unsafe_code, reason = "a file of SQLite's is a table of C functions; there is no safe way to be one")]

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr;

use rusqlite::ffi;

use super::log_file::LogFile;
use super::page::{Pages, is_intact, is_sealed, seal};

/// The number of the lock that the writer of the log holds (`WAL_WRITE_LOCK`), in the memory shared
/// by a database's users.
const WRITE_LOCK: c_int = 0;

/// The methods of one open database file. The file's `pMethods` points to `own`, which is the first
/// field. SQLite uses a file in one thread at a time.
#[repr(C)]
pub(super) struct Methods {
    /// The table of methods, to which SQLite has a pointer.
    own: ffi::sqlite3_io_methods,
    /// The methods of the system's VFS, which do the work.
    system: *const ffi::sqlite3_io_methods,
    /// True if checksums are verified.
    looks: bool,
    /// The layout of the file's pages; `None` until the header was read or written.
    pages: Cell<Option<Pages>>,
    /// The end of the pages that were written before the first page, whose header defines the
    /// layout. SQLite may write in this order when it rewrites a file.
    early: Cell<i64>,
    /// The buffer in which a page gets its checksum, because SQLite's buffer must not be changed.
    sealed: RefCell<Vec<u8>>,
    /// The log, while it is open.
    log: Cell<*const LogFile>,
}

/// Replaces the methods of an open file that depend on its content.
///
/// # Safety
/// `file` was opened by the system's VFS, and no other thread uses it yet.
pub(super) unsafe fn take_place(file: *mut ffi::sqlite3_file, looks: bool) {
    // SAFETY: an `xOpen` that succeeds has set `pMethods` to a table that outlives the file; tables
    // are plain data.
    let system = unsafe { (*file).pMethods };
    // SAFETY: see above.
    let copy = unsafe { ptr::read(system) };
    let own = ffi::sqlite3_io_methods {
        // Without `xFetch` and `xUnfetch`, which version 3 added: SQLite would read a mapped page
        // without calling `xRead`.
        iVersion: copy.iVersion.min(2),
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        xShmLock: Some(lock_memory),
        ..copy
    };
    let methods = Methods {
        own,
        system,
        looks,
        pages: Cell::new(None),
        early: Cell::new(0),
        sealed: RefCell::default(),
        log: Cell::new(ptr::null()),
    };
    // SAFETY: `file` is valid for writes, as SQLite gave it to `xOpen`. The new table lives until
    // `close` frees it, which is the last call on the file. The unix VFS calls its methods by name
    // and never looks at `pMethods` of its own files.
    unsafe { (*file).pMethods = Box::into_raw(Box::new(methods)).cast() };
}

/// # Safety
/// `file` is one on which [`take_place`] was done and [`close`] was not, and `close` is not called
/// while the returned reference lives.
pub(super) unsafe fn methods<'a>(file: *mut ffi::sqlite3_file) -> &'a Methods {
    // SAFETY: `pMethods` was set by `take_place` to the first field of a `repr(C)` `Methods` in a
    // box, which is not freed before `close` and to which there never is a mutable reference.
    // SQLite uses a file in one thread at a time, so the cells in it are not raced for.
    unsafe { &*(*file).pMethods.cast::<Methods>() }
}

impl Methods {
    /// Sets the log that belongs to the file; null when it is closed.
    pub(super) fn set_log(&self, log: *const LogFile) {
        self.log.set(log);
    }

    /// Calls the system's `xRead`.
    ///
    /// # Safety
    /// `file` is the file of these methods, and `data` is valid for writes of `length` bytes.
    unsafe fn read(&self, file: *mut ffi::sqlite3_file, data: *mut c_void, length: c_int, offset: i64) -> c_int {
        // SAFETY: the method of the table that the system gave this very file; the caller promises
        // the rest.
        unsafe { (*self.system).xRead.map_or(ffi::SQLITE_IOERR, |read| read(file, data, length, offset)) }
    }

    /// Calls the system's `xWrite`.
    ///
    /// # Safety
    /// `file` is the file of these methods, and `data` is valid for reads of `length` bytes.
    unsafe fn write(&self, file: *mut ffi::sqlite3_file, data: *const c_void, length: c_int, offset: i64) -> c_int {
        // SAFETY: as in `read`.
        unsafe { (*self.system).xWrite.map_or(ffi::SQLITE_IOERR, |write| write(file, data, length, offset)) }
    }

    /// Reads the header of the file, unless the layout is known or the file has none.
    ///
    /// # Safety
    /// `file` is the file of these methods.
    unsafe fn look(&self, file: *mut ffi::sqlite3_file) -> c_int {
        if self.pages.get().is_some() {
            return ffi::SQLITE_OK;
        }
        let mut header = [0; Pages::HEADER];
        // SAFETY: the caller promises the file, and the array has the length that is passed.
        match unsafe { self.read(file, header.as_mut_ptr().cast(), Pages::HEADER as c_int, 0) } {
            ffi::SQLITE_OK => self.pages.set(Pages::of_header(&header)),
            ffi::SQLITE_IOERR_SHORT_READ => {}
            code => return code,
        }
        ffi::SQLITE_OK
    }

    /// Returns the number of the page at a range; `None` if the range is not exactly one page with
    /// a checksum.
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

    /// Adds the checksums to pages that were written before the layout was known.
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

    /// Takes the layout from the header, if these bytes begin the file.
    fn learn(&self, data: &[u8], offset: i64) {
        if offset == 0
            && let Some(pages) = Pages::of_header(data)
        {
            self.pages.set(Some(pages));
        }
    }
}

/// `xRead`: calls the system's, and returns an error for a page with a wrong checksum.
unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, data: *mut c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: only files of `take_place` have this method, and SQLite does not close a file during
    // another call on it.
    let methods = unsafe { methods(file) };
    // SAFETY: SQLite's own arguments.
    let code = unsafe { methods.read(file, data, length, offset) };
    // A short read is filled with zeros and reported as short, so there is no whole page to verify.
    let (ffi::SQLITE_OK, Ok(bytes)) = (code, usize::try_from(length)) else { return code };
    // SAFETY: the read that just succeeded has written `length` bytes there; no other code has the
    // buffer until this returns.
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

/// `xWrite`: calls the system's with the page and its checksum.
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, data: *const c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: as in `read`.
    let methods = unsafe { methods(file) };
    let Ok(bytes) = usize::try_from(length) else { return ffi::SQLITE_IOERR_WRITE };
    // SAFETY: SQLite gave a buffer of `length` bytes, which no other code changes until this
    // returns.
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

/// `xShmLock`: calls the system's. When a transaction ends, its uncommitted bytes of the log are
/// discarded before another process may write there.
unsafe extern "C" fn lock_memory(file: *mut ffi::sqlite3_file, first: c_int, count: c_int, flags: c_int) -> c_int {
    // SAFETY: as in `read`.
    let methods = unsafe { methods(file) };
    if flags & ffi::SQLITE_SHM_UNLOCK != 0 && first == WRITE_LOCK {
        // SAFETY: the log sets this pointer when it is opened and clears it when it is closed. One
        // thread at a time uses it and this file.
        unsafe { methods.log.get().as_ref() }.into_iter().for_each(LogFile::forget);
    }
    // SAFETY: the method of the table that the system gave this very file, with SQLite's own
    // arguments.
    unsafe { (*methods.system).xShmLock.map_or(ffi::SQLITE_IOERR_SHMLOCK, |lock| lock(file, first, count, flags)) }
}

/// `xClose`: restores the file's own methods, and calls the system's.
unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: only files of `take_place` have this method, so `pMethods` came from `Box::into_raw`
    // of a `Methods`. SQLite closes a file once and during no other call on it, so no reference to
    // the box is left and it is freed only here.
    let methods = unsafe { Box::from_raw((*file).pMethods.cast_mut().cast::<Methods>()) };
    // SAFETY: as in `lock_memory`. SQLite closes the log first, so the pointer is null here.
    unsafe { methods.log.get().as_ref() }.into_iter().for_each(LogFile::lose_database);
    // SAFETY: `file` stays SQLite's valid memory until this call returns; the table is the one the
    // system had set.
    unsafe { (*file).pMethods = methods.system };
    // SAFETY: the file is again as the system's VFS left it, and its table outlives it.
    unsafe { (*methods.system).xClose.map_or(ffi::SQLITE_IOERR, |close| close(file)) }
}
