//! A small pool of connections that only read.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::api::error::Result;
use crate::sqlite::file_layer;
use crate::sqlite::file_layer::store_files::{CommitOutcome, FilePaths, leave_log};
use crate::sqlite::processes::lock_wait::wait_for_locks;
use crate::sqlite::store::connect::open_through;

/// The number of idle connections that stay open.
const KEPT: usize = 4;

/// The number of prepared statements that a connection caches. Each combination of filter
/// conditions needs one.
const STATEMENTS: usize = 192;

/// A pool of connections for reads. Reads do not wait for each other: a missing connection is
/// opened.
#[derive(Debug)]
pub(super) struct ReadPool {
    /// The path of the file.
    path: PathBuf,
    /// The VFS below the layer.
    vfs: Option<String>,
    /// The store's files, to detect replaced ones.
    paths: Option<Arc<FilePaths>>,
    /// The connections that are not in use.
    idle: Mutex<Vec<Connection>>,
}

impl ReadPool {
    /// Creates an empty pool.
    pub(in crate::sqlite) fn new(path: PathBuf, vfs: Option<&str>, paths: Option<Arc<FilePaths>>) -> Self {
        Self { path, vfs: vfs.map(str::to_owned), paths, idle: Mutex::new(Vec::new()) }
    }

    /// Returns an error if the store has lost its file, because a read may then have seen another
    /// file.
    pub(in crate::sqlite) fn check(&self) -> Result<()> {
        self.paths.as_ref().map_or(Ok(()), |paths| paths.check(CommitOutcome::NotWritten))
    }

    /// Closes the idle connections. None copies the log into the database; the writing connection
    /// does.
    pub(in crate::sqlite) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns an idle connection, or opens one.
    pub(in crate::sqlite) fn take(&self) -> Result<Connection> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.connect(), Ok)
    }

    /// Returns a connection to the pool, or closes it if there are enough.
    pub(in crate::sqlite) fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(connection);
        }
    }

    /// Opens a connection that cannot write.
    fn connect(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = open_through(&self.path, flags, &file_layer::over(self.vfs.as_deref())?)?;
        wait_for_locks(&mut connection, &self.path)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        rusqlite::vtab::array::load_module(&connection)?;
        // As on the writing connection: otherwise SQLite plans a statement with a bound LIMIT again
        // at each call.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        leave_log(&connection);
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "cache_size", -8_192)?;
        Ok(connection)
    }
}
