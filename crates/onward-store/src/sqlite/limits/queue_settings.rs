//! The settings of queues, and the numbers of running tasks of queues with a concurrency. They are
//! cached, because every claim needs them.

use std::time::Duration;

use rusqlite::params;

use crate::api::error::{Error, Result};
use crate::api::queue::{QueueMode, QueueSettings};
use crate::bounds;
use crate::sqlite::columns::durations::microseconds;
use crate::sqlite::columns::meta::meta;
use crate::sqlite::commit::connection::Database;

/// The cached settings of queues. A queue with the default settings has no entry.
#[derive(Debug, Default, Clone)]
pub(in crate::sqlite) struct Queues {
    /// The order in which queues are served.
    mode: QueueMode,
    /// The number of changes to the configuration. Another value shows a process that it must read
    /// the limits again.
    configuration: i64,
    /// The queues with other settings than the defaults.
    known: rustc_hash::FxHashMap<i64, Queue>,
    /// True if a queue has a concurrency.
    limited: bool,
}

/// A queue's settings and usage.
#[derive(Debug, Clone, Copy)]
struct Queue {
    /// The settings.
    settings: QueueSettings,
    /// The number of its running tasks; counted only if it has a concurrency.
    running: i64,
    /// True if `running` is not written yet.
    unsaved: bool,
}

impl Queues {
    /// Reads the settings.
    pub(in crate::sqlite) fn load(connection: &Database<'_>) -> Result<Self> {
        let mode = meta(connection, "queue_mode")?;
        let mode = usize::try_from(mode).ok().and_then(|code| QueueMode::ALL.get(code).copied());
        let mut queues = Self {
            mode: mode
                .ok_or_else(|| Error::corrupt("the store has a queue mode that does not exist; restore a backup"))?,
            configuration: meta(connection, "configuration")?,
            ..Self::default()
        };
        let mut statement = connection.prepare_cached(
            "SELECT id, weight, concurrency, running, affinity_wait FROM queue \
             WHERE weight <> 1 OR concurrency IS NOT NULL OR affinity_wait IS NOT NULL",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let affinity_wait = row.get::<_, Option<u64>>(4)?.map_or(bounds::AFFINITY_WAIT, Duration::from_micros);
            let settings = QueueSettings { weight: row.get(1)?, concurrency: row.get(2)?, affinity_wait };
            queues.known.insert(row.get(0)?, Queue { settings, running: row.get(3)?, unsaved: false });
        }
        queues.see_limits();
        Ok(queues)
    }

    /// Updates `limited` after a change.
    fn see_limits(&mut self) {
        self.limited = self.known.values().any(|queue| queue.settings.concurrency.is_some());
    }

    /// Returns the order in which queues are served.
    pub(in crate::sqlite) fn mode(&self) -> QueueMode {
        self.mode
    }

    /// Returns the number of changes to the configuration.
    pub(in crate::sqlite) fn configuration(&self) -> u64 {
        self.configuration.unsigned_abs()
    }

    /// Returns a queue's settings.
    pub(in crate::sqlite) fn settings(&self, queue: i64) -> QueueSettings {
        self.known.get(&queue).map(|queue| queue.settings).unwrap_or_default()
    }

    /// Returns a queue's weight.
    pub(in crate::sqlite) fn weight(&self, queue: i64) -> u32 {
        if self.known.is_empty() { 1 } else { self.settings(queue).weight }
    }

    /// Returns the number of further tasks of a queue that may run; `None` for any number.
    pub(in crate::sqlite) fn room(&self, queue: i64) -> Option<usize> {
        let queue = self.known.get(&queue).filter(|_| self.limited)?;
        queue.settings.concurrency.map(|limit| usize::try_from(i64::from(limit) - queue.running).unwrap_or(0))
    }

    /// Returns the queues that have a concurrency, each with the number of further tasks that may
    /// run.
    pub(in crate::sqlite) fn rooms(&self) -> impl Iterator<Item = (i64, usize)> {
        let limited = self.known.keys().filter(|_| self.limited);
        limited.filter_map(|queue| self.room(*queue).map(|room| (*queue, room)))
    }

    /// Returns the number of running tasks of a queue, if it is counted.
    pub(in crate::sqlite) fn running(&self, queue: i64) -> Option<i64> {
        self.known.get(&queue).filter(|queue| queue.settings.concurrency.is_some()).map(|queue| queue.running)
    }

    /// Returns true if any queue has a concurrency.
    pub(in crate::sqlite) fn is_limited(&self) -> bool {
        self.limited
    }

    /// Counts a task that starts (1) or ends (-1). Returns true if a full queue has room now.
    pub(in crate::sqlite) fn count(&mut self, queue: i64, change: i64) -> bool {
        let Some(queue) = self.known.get_mut(&queue) else { return false };
        let Some(limit) = queue.settings.concurrency else { return false };
        let was_full = queue.running >= i64::from(limit);
        queue.running += change;
        queue.unsaved = true;
        was_full && queue.running < i64::from(limit)
    }

    /// Writes the changed numbers.
    pub(in crate::sqlite) fn save(&mut self, connection: &Database<'_>) -> Result<()> {
        if !self.limited {
            return Ok(());
        }
        for (number, queue) in self.known.iter_mut().filter(|(_, queue)| queue.unsaved) {
            connection
                .prepare_cached("UPDATE queue SET running = ? WHERE id = ?")?
                .execute(params![queue.running, number])?;
            queue.unsaved = false;
        }
        Ok(())
    }

    /// Changes the settings of a queue in which `running` tasks run.
    pub(in crate::sqlite) fn set(
        &mut self,
        connection: &Database<'_>,
        number: i64,
        settings: QueueSettings,
        running: i64,
    ) -> Result<()> {
        let wait = Some(settings.affinity_wait).filter(|wait| *wait != bounds::AFFINITY_WAIT).map(microseconds);
        connection
            .prepare_cached(
                "UPDATE queue SET weight = ?, concurrency = ?, running = ?, affinity_wait = ? WHERE id = ?",
            )?
            .execute(params![settings.weight, settings.concurrency, running, wait, number])?;
        self.known.insert(number, Queue { settings, running, unsaved: false });
        self.known.retain(|_, queue| queue.settings != QueueSettings::default());
        self.see_limits();
        Ok(())
    }

    /// Deletes the settings of a queue in which no task runs.
    pub(in crate::sqlite) fn forget(&mut self, connection: &Database<'_>, number: i64) -> Result<()> {
        connection
            .prepare_cached(
                "UPDATE queue SET weight = 1, concurrency = NULL, running = 0, affinity_wait = NULL WHERE id = ?",
            )?
            .execute([number])?;
        self.known.remove(&number);
        self.see_limits();
        Ok(())
    }

    /// Sets the order in which queues are served.
    pub(in crate::sqlite) fn set_mode(&mut self, connection: &Database<'_>, mode: QueueMode) -> Result<()> {
        let code = QueueMode::ALL.iter().position(|one| *one == mode).unwrap_or(0);
        connection
            .prepare_cached("UPDATE meta SET value = ? WHERE name = 'queue_mode'")?
            .execute([code.cast_signed() as i64])?;
        self.mode = mode;
        self.reconfigured(connection)
    }

    /// Counts a change of the configuration, so that workers release tasks that they hold unstarted
    /// and that could not be claimed any more.
    pub(in crate::sqlite) fn reconfigured(&mut self, connection: &Database<'_>) -> Result<()> {
        self.configuration += 1;
        connection
            .prepare_cached("UPDATE meta SET value = ? WHERE name = 'configuration'")?
            .execute([self.configuration])?;
        Ok(())
    }
}
