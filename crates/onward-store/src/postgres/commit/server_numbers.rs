//! The store's counters as a transaction reads them, and those that each writing transaction
//! advances.

use tokio_postgres::Row;

use crate::api::error::Result;
use crate::model::Now;
use crate::postgres::connect::error::classified;
use crate::postgres::connect::error::nothing_said;
use crate::postgres::migrations::migrate;
use crate::postgres::shared::Shared;
use crate::postgres::working_set::change_set::ChangeSet;
use crate::postgres::working_set::counters::Counters;

/// The numbers that each writing transaction advances. Comparing them shows a writer what has
/// happened since its last transaction.
#[derive(Debug, Clone, Copy)]
pub(in crate::postgres) struct TransactionNumbers {
    /// The version of the small state.
    pub(in crate::postgres) version: i64,
    /// The number of transactions that have written.
    pub(in crate::postgres) write: i64,
    /// The server's number of this transaction, as in `xmin` of the rows that it writes.
    pub(in crate::postgres) transaction: i64,
    /// The number of the last writing transaction that changed what runs in another writer's
    /// session.
    pub(in crate::postgres) invalidation: i64,
}

impl TransactionNumbers {
    /// Returns the numbers as they are after a transaction with this change set.
    pub(in crate::postgres) fn after(self, change_set: &ChangeSet, interferes: bool) -> Self {
        let version = self.version + i64::from(change_set.changes_small_state());
        let write = self.write + 1;
        let invalidation = if interferes { write } else { self.invalidation };
        Self { version, write, invalidation, ..self }
    }

    /// Returns true if the last writing transaction changed what runs in another writer's session.
    pub(super) fn are_of_invalidation(&self) -> bool {
        self.invalidation == self.write
    }
}

/// The store's counters and time at the beginning of a transaction.
#[derive(Debug)]
pub(in crate::postgres) struct ServerNumbers {
    pub(in crate::postgres) counters: Counters,
    pub(in crate::postgres) now: Now,
    /// The latest day on which a task had ended, and one of its queues.
    pub(in crate::postgres) latest_day: Option<(i64, String)>,
}

/// The numbers that a writing transaction reads at its beginning.
#[derive(Debug)]
pub(super) struct WriterNumbers {
    pub(in crate::postgres) server_numbers: ServerNumbers,
    pub(in crate::postgres) numbers: TransactionNumbers,
    /// The number of this writer's last batch; 0 if there is none.
    pub(in crate::postgres) batch: i64,
    /// True if completions are pending, which must be consumed first.
    pub(in crate::postgres) has_completions: bool,
}

impl ServerNumbers {
    /// Decodes the columns that [`COUNTERS_TO_READ`] and [`COUNTERS_TO_WRITE`] share.
    pub(in crate::postgres) fn of(shared: &Shared, rows: &[Row]) -> Result<Self> {
        let row = rows.first().ok_or_else(nothing_said)?;
        let number = |at: usize| row.try_get::<_, i64>(at).map_err(classified);
        let counters =
            Counters { last_task: number(0)?, last_session: number(1)?, ends: number(2)?, last_entry: number(3)? };
        let (day, queue): (Option<i64>, Option<String>) =
            (row.try_get(5).map_err(classified)?, row.try_get(6).map_err(classified)?);
        Ok(Self { counters, now: shared.now(number(4)?), latest_day: day.zip(queue) })
    }
}

impl WriterNumbers {
    /// Decodes the row of [`COUNTERS_TO_WRITE`].
    ///
    /// Returns an error if a newer program has migrated the tables in the meantime, because they
    /// may contain what this program does not know.
    pub(in crate::postgres) fn of(shared: &Shared, rows: &[Row]) -> Result<Self> {
        let row = rows.first().ok_or_else(nothing_said)?;
        let version: i32 = row.try_get(9).map_err(classified)?;
        migrate::check(&shared.sql, shared.options.migrations, version.unsigned_abs())?;
        let number = |at: usize| row.try_get::<_, Option<i64>>(at).map_err(classified).map(Option::unwrap_or_default);
        let numbers = TransactionNumbers {
            version: number(7)?,
            write: number(10)?,
            transaction: number(11)?,
            invalidation: number(13)?,
        };
        let has_completions = row.try_get(12).map_err(classified)?;
        Ok(Self { server_numbers: ServerNumbers::of(shared, rows)?, numbers, batch: number(8)?, has_completions })
    }
}

/// The query for the store's counters. Reads and writes share its first columns.
macro_rules! counters {
    ($day:literal, $queue:literal, $more:literal) => {
        concat!(
            "SELECT (SELECT last_value FROM {s}.last_task), (SELECT last_value FROM {s}.last_session), \
             (SELECT last_value FROM {s}.ends), (SELECT last_value FROM {s}.last_entry), \
             (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, ",
            $day,
            ", ",
            $queue,
            ", ",
            $more
        )
    };
}

/// The counters that a writing transaction reads; `$1` is the writer.
pub(super) const COUNTERS_TO_WRITE: &str = counters!(
    "(SELECT day FROM {s}.day ORDER BY day DESC LIMIT 1)",
    "(SELECT queue FROM {s}.day ORDER BY day DESC LIMIT 1)",
    "(SELECT last_value FROM {s}.last_small_state), (SELECT batch FROM {s}.writer WHERE id = $1), (SELECT version FROM {s}.version), \
     (SELECT last_value FROM {s}.last_write), pg_current_xact_id()::text::bigint, EXISTS (SELECT 1 FROM {s}.completion), \
     (SELECT last_value FROM {s}.last_invalidation)"
);

/// The counters that a read needs, and a flag for unflushed changes that it may have seen.
pub(super) const COUNTERS_TO_READ: &str = counters!(
    "NULL::bigint",
    "NULL::text",
    "CASE WHEN pg_is_in_recovery() THEN false ELSE pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() END"
);
