//! The numbers of the store: those that it gave last, and those that transactions that write move
//! on.

use tokio_postgres::Row;

use crate::api::error::Result;
use crate::model::Now;
use crate::postgres::connect::error::classified;
use crate::postgres::connect::error::nothing_said;
use crate::postgres::migrations::migrate;
use crate::postgres::shared::Shared;
use crate::postgres::working_set::change_set::ChangeSet;
use crate::postgres::working_set::counters::Counters;

/// Numbers that transactions that write move on.
#[derive(Debug, Clone, Copy)]
pub(in crate::postgres) struct TransactionNumbers {
    /// The version of what is not a task.
    pub(in crate::postgres) version: i64,
    /// How many transactions have written.
    pub(in crate::postgres) write: i64,
    /// The server's number of this one.
    pub(in crate::postgres) transaction: i64,
    /// Which of them was the last that has interfered with what runs elsewhere.
    pub(in crate::postgres) invalidation: i64,
}

impl TransactionNumbers {
    /// As they are when this has been written.
    pub(in crate::postgres) fn after(self, change_set: &ChangeSet, interferes: bool) -> Self {
        let version = self.version + i64::from(change_set.changes_small_state());
        let write = self.write + 1;
        let invalidation = if interferes { write } else { self.invalidation };
        Self { version, write, invalidation, ..self }
    }

    /// Whether the transaction that has written last has interfered.
    pub(super) fn are_of_invalidation(&self) -> bool {
        self.invalidation == self.write
    }
}

/// What the store says of itself at the beginning of a transaction.
#[derive(Debug)]
pub(in crate::postgres) struct ServerNumbers {
    pub(in crate::postgres) counters: Counters,
    pub(in crate::postgres) now: Now,
    /// The latest day on which a task had ended, and one queue of it.
    pub(in crate::postgres) latest_day: Option<(i64, String)>,
}

/// What it says beside that to one that writes.
#[derive(Debug)]
pub(super) struct WriterNumbers {
    pub(in crate::postgres) server_numbers: ServerNumbers,
    pub(in crate::postgres) numbers: TransactionNumbers,
    /// The last batch of this writer; 0 for none.
    pub(in crate::postgres) batch: i64,
    /// Whether there are completions, which come first.
    pub(in crate::postgres) has_completions: bool,
}

impl ServerNumbers {
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
    /// Fails where a newer program has changed the tables meanwhile, and keeps there what this one
    /// does not know.
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

pub(super) const COUNTERS_TO_WRITE: &str = counters!(
    "(SELECT day FROM {s}.day ORDER BY day DESC LIMIT 1)",
    "(SELECT queue FROM {s}.day ORDER BY day DESC LIMIT 1)",
    "(SELECT last_value FROM {s}.last_small_state), (SELECT batch FROM {s}.writer WHERE id = $1), (SELECT version FROM {s}.version), \
     (SELECT last_value FROM {s}.last_write), pg_current_xact_id()::text::bigint, EXISTS (SELECT 1 FROM {s}.completion), \
     (SELECT last_value FROM {s}.last_invalidation)"
);

pub(super) const COUNTERS_TO_READ: &str = counters!(
    "NULL::bigint",
    "NULL::text",
    "CASE WHEN pg_is_in_recovery() THEN false ELSE pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() END"
);
