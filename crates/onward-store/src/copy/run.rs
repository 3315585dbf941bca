//! Carrying the rows of a store to another.

use std::time::Duration;

use super::end::{CopyEnd, Kind};
use crate::api::error::{Error, Result};
use crate::api::outcome::Outcome;
use crate::api::store::Store;
use crate::api::write::Write;
use crate::postgres::{ChangeSet, Counters, SmallStateRow};
use crate::postgres::{PostgresSource, PostgresTarget};
use crate::sqlite::{SqliteSource, SqliteTarget};

/// How many rows travel together.
pub(crate) const PIECE: usize = 256;

/// How often time is let pass over a store before whoever is still there counts as alive.
const SWEEPS: usize = 10_000;

/// What a copy carried over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// How many tasks, live and ended.
    pub tasks: u64,
}

/// A source, once it is known that nobody works on it.
#[derive(Debug)]
pub(crate) struct Begun {
    /// The numbers given last.
    pub(crate) counters: Counters,
    /// How many tasks there are, live and ended.
    pub(crate) tasks: u64,
    /// The steady time of its clock.
    pub(crate) steady: Duration,
}

/// Reads a store in pieces; everything that is no task comes first.
pub(crate) trait Source {
    /// The next piece; `None` behind the last.
    async fn next(&mut self) -> Result<Option<ChangeSet>>;

    /// Fails if somebody has changed the store meanwhile.
    async fn end(self) -> Result<()>;
}

/// Writes a store in pieces. Dropped before its end it leaves nothing.
pub(crate) trait Target {
    /// The steady time of its clock.
    fn steady(&self) -> Duration;

    async fn put(&mut self, piece: ChangeSet) -> Result<()>;

    /// Makes it a store.
    async fn end(self, counters: Counters) -> Result<()>;
}

/// Moves a store that nobody works on to a place where there is none: tasks with everything that is
/// known of them, history, events, schedules, limits, pauses and counts. No number that was given
/// in the old store is given again in the new one. `progress` is told of tasks copied, and of all.
///
/// The source is not changed, except that what time brings is brought first, as any process does
/// that opens it. The target is there when this is done; dropped or failed before, it leaves none.
/// Both stores may be used afterwards and know nothing of one another: take one of them out of use.
///
/// Memory: a few hundred tasks at a time, and what a SQLite store needs for its index when it is
/// opened.
///
/// # Errors
/// [`is_not_found`](Error::is_not_found) if there is no store at `from`;
/// [`is_invalid`](Error::is_invalid) if a session is open there, somebody changes it meanwhile, or
/// there is something at `to`; else as for opening either.
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

/// Lets time pass over a store, so that whoever has gone is gone; refuses where somebody is still
/// there.
async fn stop(store: &dyn Store) -> Result<()> {
    for _ in 0..SWEEPS {
        let outcomes = store.apply(vec![Write::Sweep]).await?;
        let Some(Outcome::Swept(swept)) = outcomes.first() else { return Err(Error::closed()) };
        let (lost, sessions) = (swept.lost, store.sessions().await?);
        if sessions.is_empty() {
            return Ok(());
        }
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

async fn into(source: impl Source, begun: Begun, to: CopyEnd, progress: impl FnMut(u64, u64)) -> Result<Copied> {
    match to.0 {
        Kind::Sqlite(path, options) => carry(source, begun, SqliteTarget::new(path, options)?, progress).await,
        Kind::Postgres(url, options) => carry(source, begun, PostgresTarget::new(&url, options).await?, progress).await,
    }
}

async fn carry(
    mut source: impl Source,
    begun: Begun,
    mut target: impl Target,
    mut progress: impl FnMut(u64, u64),
) -> Result<Copied> {
    let mut tasks = 0;
    let later = Later { from: begun.steady, to: target.steady() };
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

/// Steady times are of a machine, or of a server: what is kept in them is moved to those of the
/// target.
struct Later {
    from: Duration,
    to: Duration,
}

impl Later {
    fn shift(&self, items: &mut [SmallStateRow]) -> Result<()> {
        for item in items.iter_mut().filter(|item| item.sort == "bucket") {
            let full_at: Duration = item.body()?;
            let left = full_at.saturating_sub(self.from);
            let full_at = if left.is_zero() { Duration::ZERO } else { self.to.saturating_add(left) };
            item.set_body(&full_at)?;
        }
        Ok(())
    }
}
