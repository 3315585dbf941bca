//! Where a copy comes from, and where it goes.

use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::Clock;
use crate::postgres::{PostgresOptions, PostgresStore};
use crate::sqlite::{SqliteOptions, SqliteStore};

/// One end of a [copy](super::copy): a SQLite file or a PostgreSQL database.
#[derive(Debug, Clone)]
pub struct CopyEnd(pub(super) Kind);

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Sqlite(PathBuf, SqliteOptions),
    Postgres(String, PostgresOptions),
}

impl CopyEnd {
    /// The SQLite store in a file.
    #[must_use]
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self(Kind::Sqlite(path.into(), SqliteStore::options()))
    }

    /// The PostgreSQL store at a URL; a `#name` behind it names the schema.
    #[must_use]
    pub fn postgres(url: impl Into<String>) -> Self {
        Self(Kind::Postgres(url.into(), PostgresStore::options()))
    }

    /// The clock that the store goes by; for tests. Default: that of the backend.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self(match self.0 {
            Kind::Sqlite(path, options) => Kind::Sqlite(path, options.clock(clock)),
            Kind::Postgres(url, options) => Kind::Postgres(url, options.clock(clock)),
        })
    }
}
