//! The transfer of a store's rows to another store.

use crate::api::read::StoreReads;
use std::time::Duration;

use super::end::{CopyEnd, Kind};
use crate::api::error::{Error, Result};
use crate::api::outcome::Outcome;
use crate::api::store::Store;
use crate::api::write::Write;
use crate::postgres::{ChangeSet, Counters, SmallStateRow};
use crate::postgres::{PostgresSource, PostgresTarget};
use crate::sqlite::{SqliteSource, SqliteTarget};

/// The number of rows in one piece.
pub(crate) const PIECE: usize = 256;

/// The number of documents in one piece, which may be large.
pub(crate) const DOCUMENT_PIECE: usize = 16;

/// The number of sweeps after which a session that is still open counts as live.
const SWEEPS: usize = 10_000;

/// The result of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// The number of tasks, live and ended.
    pub tasks: u64,
}

/// The facts about a source that no process works on.
#[derive(Debug)]
pub(crate) struct SourceFacts {
    /// The numbers that the source assigned last.
    pub(crate) counters: Counters,
    /// The number of tasks, live and ended.
    pub(crate) tasks: u64,
    /// The steady time of its clock.
    pub(crate) steady: Duration,
}

/// A source, which reads a store in pieces. Records other than tasks come first.
pub(crate) trait Source {
    /// Returns the next piece; `None` after the last one.
    async fn next(&mut self) -> Result<Option<ChangeSet>>;

    /// Fails if a process has changed the store since the copy began.
    async fn end(self) -> Result<()>;
}

/// A target, which writes a store in pieces. If it is dropped before its end, no store remains.
pub(crate) trait Target {
    /// Returns the steady time of its clock.
    fn steady(&self) -> Duration;

    /// Writes the next piece.
    async fn put(&mut self, piece: ChangeSet) -> Result<()>;

    /// Completes the store.
    async fn end(self, counters: Counters) -> Result<()>;
}

/// Copies a store that no process works on to a place without one. It copies tasks with all their
/// data, history, events, schedules, limits, pauses and counts. The new store never reuses a number
/// that the old one assigned. `progress` is called with the number of tasks copied and the number
/// of all tasks.
///
/// The source is not changed, except that due changes are applied first, as in any process that
/// opens it. The target exists when the future completes. If the future fails or is dropped
/// earlier, no target remains. Afterwards both stores are usable and independent, so stop using one
/// of them.
///
/// Memory: a few hundred tasks at a time, and the index that a SQLite store needs when it is
/// opened.
///
/// # Errors
/// [`is_not_found`](Error::is_not_found) if there is no store at `from`;
/// [`is_invalid`](Error::is_invalid) if a session is open there, if a process changes it during the
/// copy, or if something exists at `to`; otherwise the errors of opening either store.
pub async fn copy(from: CopyEnd, to: CopyEnd, progress: impl FnMut(u64, u64)) -> Result<Copied> {
    match from.0 {
        Kind::Sqlite(path, options) => {
            stop(&options.clone().create(false).open(&path).await?).await?;
            let (source, begun) = SqliteSource::open(&path, &options)?;
            into(source, begun, to, progress).await
        }
        Kind::Postgres(url, options) => {
            stop(&options.clone().create(false).open(&url).await?).await?;
            let (source, begun) = PostgresSource::open(&url, &options).await?;
            into(source, begun, to, progress).await
        }
    }
}

/// Sweeps a store until the sessions of ended processes are closed. Returns an error if a session
/// stays open.
async fn stop(store: &dyn Store) -> Result<()> {
    for _ in 0..SWEEPS {
        let outcomes = store.apply(vec![Write::Sweep]).await?;
        let Some(Outcome::Swept(swept)) = outcomes.first() else { return Err(Error::closed()) };
        let (lost, sessions) = (swept.lost, store.sessions().await?);
        if sessions.is_empty() {
            return Ok(());
        }
        // A sweep that took tasks back may leave the session open until the next sweep.
        if lost == 0 {
            let names: Vec<&str> = sessions.iter().map(|session| session.name.as_str()).take(3).collect();
            return Err(Error::invalid(format!(
                "{} sessions are open on the store ({}); stop the workers, or wait until the leases of those that died are over",
                sessions.len(),
                names.join(", ")
            ))
            .about(&store.info().location));
        }
    }
    Err(Error::invalid("sessions of the store do not come to an end; stop the workers").about(&store.info().location))
}

/// Copies a source to an end.
async fn into(source: impl Source, begun: SourceFacts, to: CopyEnd, progress: impl FnMut(u64, u64)) -> Result<Copied> {
    match to.0 {
        Kind::Sqlite(path, options) => carry(source, begun, SqliteTarget::new(path, options)?, progress).await,
        Kind::Postgres(url, options) => carry(source, begun, PostgresTarget::new(&url, options).await?, progress).await,
    }
}

/// Copies a source to a target piece by piece. The target completes the store only if the source
/// gave as many tasks as it counted at the beginning, and did not change meanwhile.
async fn carry(
    mut source: impl Source,
    begun: SourceFacts,
    mut target: impl Target,
    mut progress: impl FnMut(u64, u64),
) -> Result<Copied> {
    let mut tasks = 0;
    let later = ClockShift { from: begun.steady, to: target.steady() };
    progress(tasks, begun.tasks);
    while let Some(mut piece) = source.next().await? {
        later.shift(&mut piece.items)?;
        tasks += (piece.live.len() + piece.ended.len()) as u64;
        target.put(piece).await?;
        progress(tasks, begun.tasks);
    }
    if tasks != begun.tasks {
        let all = begun.tasks;
        return Err(Error::corrupt(format!(
            "{tasks} of {all} tasks could be read; check the store, or restore a backup"
        )));
    }
    source.end().await?;
    target.end(begun.counters).await?;
    Ok(Copied { tasks })
}

/// The difference between the clocks of source and target. Steady time belongs to a machine or a
/// server, so stored steady times are shifted.
struct ClockShift {
    from: Duration,
    to: Duration,
}

impl ClockShift {
    /// Shifts the times of token buckets, which are steady times of the source.
    fn shift(&self, items: &mut [SmallStateRow]) -> Result<()> {
        for item in items.iter_mut().filter(|item| item.sort == "bucket") {
            let full_at: Duration = item.body()?;
            let left = full_at.saturating_sub(self.from);
            // A full bucket stays full on any clock.
            let full_at = if left.is_zero() { Duration::ZERO } else { self.to.saturating_add(left) };
            item.set_body(&full_at)?;
        }
        Ok(())
    }
}
