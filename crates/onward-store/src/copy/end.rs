//! The ends of a copy.

use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::Clock;
use crate::postgres::{PostgresOptions, PostgresStore};
use crate::sqlite::{SqliteOptions, SqliteStore};

/// An end of a [copy](super::copy): a SQLite file or a PostgreSQL database.
#[derive(Debug, Clone)]
pub struct CopyEnd(pub(super) Kind);

/// The kind of store, with the options to open it.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Sqlite(PathBuf, SqliteOptions),
    Postgres(String, PostgresOptions),
}

impl CopyEnd {
    /// Names the SQLite store in a file.
    #[must_use]
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self(Kind::Sqlite(path.into(), SqliteStore::options()))
    }

    /// Names the PostgreSQL store at a URL. A `#name` at its end selects the schema.
    #[must_use]
    pub fn postgres(url: impl Into<String>) -> Self {
        Self(Kind::Postgres(url.into(), PostgresStore::options()))
    }

    /// Sets the clock of the store, for tests. Default: that of the backend.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self(match self.0 {
            Kind::Sqlite(path, options) => Kind::Sqlite(path, options.clock(clock)),
            Kind::Postgres(url, options) => Kind::Postgres(url, options.clock(clock)),
        })
    }
}
