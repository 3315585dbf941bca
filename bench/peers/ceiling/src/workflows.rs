//! The unavoidable cost of a run of a workflow: the rows of its steps and of its turns, in commits
//! of the size that our run had.

use anyhow::{Context as _, Result};
use bench_protocol::{Latencies, Measurement, Request, now};
use rusqlite::{Connection, params};

use crate::orchestrations::{commit, create, keep};

const SCHEMA: &str = "
    CREATE TABLE task (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, payload BLOB NOT NULL) STRICT;
    CREATE TABLE history (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, payload BLOB NOT NULL, result BLOB NOT NULL) STRICT;";

const SUBMIT: &str = "INSERT INTO task VALUES (?1, ?2, ?3)";
const END: &str = "DELETE FROM task WHERE id = ?1";
const TO_HISTORY: &str = "INSERT INTO history VALUES (?1, ?2, ?3, ?4)";

/// A payload and a result: a number.
const NUMBER: &[u8] = b"2821109907456";

/// Writes the rows of all steps of all runs, in commits of the size that the other run had. Of one
/// run at a time, it measures each run.
pub(crate) fn same_commits(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let sizes = request.commits.context("give the commit sizes of another run with --commits")?;
    let directory = tempfile::tempdir_in(&request.directory)?;
    let connection = create(&directory.path().join("ceiling.db"), request.durability)?;
    connection.execute_batch(SCHEMA)?;
    let at_once = row.submitters.max(1);
    let rounds = row.count.div_ceil(at_once);
    // The commits of as many runs as are in flight, which take turns.
    let commits = (sizes.commits * (row.steps * at_once) as f64 / 1000.0).round().max(1.0) as usize;
    let mut latencies = Latencies::with_capacity(rounds);
    let started = now();
    for round in 0..rounds {
        let before = now();
        one_round(&connection, round, (row.steps, at_once), commits)?;
        latencies.record(before.elapsed());
    }
    let per_second = (rounds * at_once) as f64 / started.elapsed().as_secs_f64();
    let value = if row.unit == "us p50" { latencies.percentile(0.5) } else { per_second };
    let measurement = Measurement::of(value).observed("ended", row.count as u64).with_latencies(latencies);
    Ok(Measurement { commits: Some(sizes), ..measurement })
}

/// Writes the steps of the runs of one round in a number of commits.
fn one_round(connection: &Connection, round: usize, (steps, at_once): (usize, usize), commits: usize) -> Result<()> {
    let all = steps * at_once;
    (0..commits).try_for_each(|number| {
        let part = number * all / commits..(number + 1) * all / commits;
        commit(connection, || {
            part.map(|at| (at % at_once, at / at_once))
                .try_for_each(|(run, step)| one_step(connection, round * at_once + run, step, steps))
        })
    })
}

/// Writes the end of a step, the turn that follows from it, and the step that the turn submits.
fn one_step(connection: &Connection, run: usize, step: usize, steps: usize) -> Result<()> {
    let (run, id) = (i64::try_from(run)?, i64::try_from(run * steps + step)?);
    connection.prepare_cached(SUBMIT)?.execute(params![id, run, NUMBER])?;
    connection.prepare_cached(END)?.execute(params![id])?;
    connection.prepare_cached(TO_HISTORY)?.execute(params![id, run, NUMBER, NUMBER])?;
    keep(connection, run, i64::try_from(step)?)
}
