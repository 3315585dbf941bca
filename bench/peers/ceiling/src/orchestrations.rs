//! The unavoidable cost of orchestrations: slots and sleeps where activities sleep, the rows of a
//! turn where steps are kept, and the commits of a signal and of the turn that consumes it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bench_protocol::{DurabilityLevel, Latencies, Measurement, Request, now};
use rusqlite::{Connection, params};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The data that a turn of one step appends to its history.
const CHUNK: [u8; 32] = [b'c'; 32];
/// A message with a number in it.
const BODY: [u8; 40] = [b'b'; 40];

const SCHEMA: &str = "
    CREATE TABLE instance (task INTEGER PRIMARY KEY, length INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
    CREATE TABLE turn (
        task INTEGER NOT NULL, first INTEGER NOT NULL, events INTEGER NOT NULL, chunk BLOB NOT NULL, PRIMARY KEY (task, first)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE message (
        task INTEGER NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (task, number)
    ) STRICT, WITHOUT ROWID;";

const KEEP: &str = "INSERT INTO turn VALUES (?1, ?2, 1, ?3)";
const COUNT: &str =
    "INSERT INTO instance VALUES (?1, 1, ?2) ON CONFLICT (task) DO UPDATE SET length = length + 1, bytes = bytes + ?2";
const RECEIVE: &str = "INSERT INTO message VALUES (?1, ?2, ?3)";
const TAKE: &str = "DELETE FROM message WHERE task = ?1 AND number <= ?2";

pub(crate) fn create(path: &Path, durability: DurabilityLevel) -> Result<Connection> {
    let synchronous = if durability == DurabilityLevel::Full { "FULL" } else { "NORMAL" };
    let connection = Connection::open(path)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;"
    ))?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

pub(crate) fn keep(connection: &Connection, task: i64, first: i64) -> Result<()> {
    connection.prepare_cached(COUNT)?.execute(params![task, CHUNK.len() as i64])?;
    connection.prepare_cached(KEEP)?.execute(params![task, first, CHUNK])?;
    Ok(())
}

pub(crate) fn commit(connection: &Connection, rows: impl FnOnce() -> Result<()>) -> Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    rows()?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

/// Writes the rows of all steps, alternating between orchestrations, in commits of the size that
/// the other run had.
pub(crate) fn steps(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let sizes = request.commits.context("give the commit sizes of another run with --commits")?;
    let directory = tempfile::tempdir_in(&request.directory)?;
    let connection = create(&directory.path().join("ceiling.db"), request.durability)?;
    let (steps, each) = (row.count * row.steps, 1000.0 / sizes.commits);
    let place = |step: usize| {
        let (round, within) = (step / (row.submitters * row.steps), step % (row.submitters * row.steps));
        ((round * row.submitters + within % row.submitters) as i64, (within / row.submitters) as i64)
    };
    let (mut done, mut due) = (0, 0.0);
    let started = now();
    while done < steps {
        due += each;
        let until = (due as usize).min(steps);
        commit(&connection, || (done..until).map(place).try_for_each(|(task, first)| keep(&connection, task, first)))?;
        done = until;
    }
    let per_second = steps as f64 / started.elapsed().as_secs_f64();
    let value = if row.unit == "us/step" { 1e6 / per_second } else { per_second };
    let kept: i64 = connection.query_row("SELECT count(*) FROM turn", [], |row| row.get(0))?;
    let kept = u64::try_from(kept)?;
    let measurement = Measurement::of(value).observed("ended", kept / row.steps as u64);
    Ok(Measurement { commits: Some(sizes), ..measurement })
}

/// Measures the commit of a signal and that of the turn that consumes it.
pub(crate) fn two_commits(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let directory = tempfile::tempdir_in(&request.directory)?;
    let connection = create(&directory.path().join("ceiling.db"), request.durability)?;
    let mut latencies = Latencies::with_capacity(row.count);
    for signal in 0..row.count {
        let (task, number) = ((signal % row.submitters) as i64, (signal / row.submitters) as i64);
        let before = now();
        connection.prepare_cached(RECEIVE)?.execute(params![task, number, BODY])?;
        commit(&connection, || {
            keep(&connection, task, number)?;
            connection.prepare_cached(TAKE)?.execute(params![task, number])?;
            Ok(())
        })?;
        latencies.record(before.elapsed());
    }
    let measurement = Measurement::of(latencies.percentile(0.99)).observed("resumed", latencies.count() as u64);
    Ok(measurement.with_latencies(latencies))
}

/// Runs `submitters` orchestrations at a time. Each makes `steps` sleeps at once, of which as many
/// run as there are slots.
pub(crate) fn semaphore_and_sleep(request: &Request) -> Result<Measurement> {
    tokio::runtime::Runtime::new()?.block_on(sleeps(request))
}

async fn sleeps(request: &Request) -> Result<Measurement> {
    let row = Arc::new(request.row.clone());
    let (slots, next) = (Arc::new(Semaphore::new(row.slots)), Arc::new(AtomicUsize::new(0)));
    let started = now();
    let mut all = JoinSet::new();
    for _ in 0..row.submitters {
        let (row, slots, next) = (row.clone(), slots.clone(), next.clone());
        all.spawn(async move {
            let mut ended = 0;
            while next.fetch_add(1, Ordering::Relaxed) < row.count {
                let activity = Duration::from_millis(row.activity_ms);
                let mut parts: JoinSet<_> = (0..row.steps).map(|_| sleep(slots.clone(), activity)).collect();
                while parts.join_next().await.is_some() {}
                ended += 1;
            }
            ended
        });
    }
    let ended: u64 = all.join_all().await.into_iter().sum();
    Ok(Measurement::of(ended as f64 / started.elapsed().as_secs_f64()).observed("ended", ended))
}

async fn sleep(slots: Arc<Semaphore>, activity: Duration) {
    let _slot = slots.acquire().await;
    tokio::time::sleep(activity).await;
}
