//! Round trips of tasks: submit, claim, completion.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bench_protocol::{CommitSizes, Measurement, Order, Request, now};

use crate::cycle::Cycle;
use crate::database::Database;

/// The batch sizes that `best batch` tries, up to the number of outstanding tasks.
const BATCHES: [usize; 9] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// The numbers of rows in front of the first live row that are tried. A page holds 18.
const IN_FRONT: [usize; 6] = [0, 3, 6, 9, 12, 15];

/// The most round trips in a trial.
const TRIAL_TASKS: usize = 20_000;

/// Measures round trips with the commit sizes of another run.
pub(crate) fn same_commits(request: &Request) -> Result<Measurement> {
    let directory = tempfile::tempdir_in(&request.directory)?;
    repeat_commits(request, directory.path())
}

/// Measures round trips with the commit sizes of another run and the better rhythm of the tree.
pub(crate) fn best_rhythm(request: &Request) -> Result<Measurement> {
    let directory = tempfile::tempdir_in(&request.directory)?;
    let in_front = best_in_front(request, sizes(request)?, directory.path())?;
    let mut request = request.clone();
    request.row.backlog.delayed += in_front;
    Ok(repeat_commits(&request, directory.path())?.with("in_front", in_front as f64))
}

fn repeat_commits(request: &Request, directory: &Path) -> Result<Measurement> {
    let sizes = sizes(request)?;
    let measurement = round_trips(request, Cycle::new(sizes), &directory.join("ceiling.db"))?;
    Ok(Measurement { commits: Some(sizes), ..measurement })
}

fn sizes(request: &Request) -> Result<CommitSizes> {
    request.commits.context("give the commit sizes of another run with --commits")
}

/// Returns the number of permanent rows before the first live row with which a round trip writes
/// the fewest pages.
///
/// The fill of the page in front decides how SQLite distributes the remaining rows of pages that
/// are being emptied. The tree keeps that rhythm to the end: the same commits write a fifth more
/// pages in one rhythm than in the other. The effect of a backlog is measured in the better rhythm,
/// with and without the backlog. Otherwise only some backlogs would have that rhythm, by chance.
fn best_in_front(request: &Request, sizes: CommitSizes, directory: &Path) -> Result<usize> {
    let mut trial = request.clone();
    trial.row.count = request.row.count.min(TRIAL_TASKS);
    trial.row.backlog.finished = 0;
    let mut best = (0, f64::INFINITY);
    for in_front in IN_FRONT {
        trial.row.backlog.delayed = request.row.backlog.delayed + in_front;
        let path = directory.join(format!("{in_front}-in-front.db"));
        let pages = round_trips(&trial, Cycle::new(sizes), &path)?.extra["pages"];
        if pages < best.1 {
            best = (in_front, pages);
        }
    }
    Ok(best.0)
}

/// Measures round trips with all three steps in each commit, at the size that is fastest for a
/// tenth of the tasks.
pub(crate) fn best_batch(request: &Request) -> Result<Measurement> {
    let directory = tempfile::tempdir_in(&request.directory)?;
    let mut trial = request.clone();
    trial.row.count = (request.row.count / 10).max(1);
    let mut best = (0, 0.0);
    for batch in BATCHES.into_iter().filter(|batch| *batch <= request.row.submitters) {
        let path = directory.path().join(format!("batch-{batch}.db"));
        let speed = round_trips(&trial, Cycle::of_batch(batch), &path)?.value;
        if speed > best.1 {
            best = (batch, speed);
        }
    }
    let (batch, _) = best;
    ensure!(batch > 0, "no batch is small enough for the {} tasks outstanding", request.row.submitters);
    let path = directory.path().join("ceiling.db");
    Ok(round_trips(request, Cycle::of_batch(batch), &path)?.with("batch", batch as f64))
}

/// Measures round trips on a new file and keeps the file. Otherwise the disk would still be
/// deleting the file of a trial while the next run is timed.
fn round_trips(request: &Request, cycle: Cycle, path: &Path) -> Result<Measurement> {
    let row = &request.row;
    let payload = Order::new(0, 0, row.payload_bytes)?.to_json()?;
    let mut database = Database::create(path, request.durability, payload)?;
    database.fill(&row.backlog)?;
    let mut run = Run::new(&mut database, request, cycle)?;
    let pages_before = run.database.pages_logged()?;
    let start = now();
    run.until_done(row.count)?;
    let elapsed = start.elapsed();
    let pages = run.database.pages_logged()? - pages_before;
    let measurement = Measurement::of(row.count as f64 / elapsed.as_secs_f64())
        .with("commits", run.commits as f64)
        .with("pages", pages as f64)
        .with("checkpoint_percent", run.checkpoints.as_secs_f64() / elapsed.as_secs_f64() * 100.0)
        .observed("completed", run.completed as u64);
    check(&database, request)?;
    Ok(measurement)
}

/// Checks that the file holds a history of all tasks, and the backlog as it was.
fn check(database: &Database, request: &Request) -> Result<()> {
    let backlog = request.row.backlog;
    let (history, live) = (database.count("history")?, database.count("task")?);
    let expected = (request.row.count + backlog.finished) as u64;
    ensure!(history == expected, "history has {history} tasks, not {expected}");
    let expected = (backlog.waiting + backlog.delayed) as u64;
    ensure!(live == expected, "{live} tasks are live, not {expected}");
    Ok(())
}

/// The state of a run: the ready and the claimed tasks. It is in memory, as in an engine that
/// rebuilds it at the start.
struct Run<'a> {
    database: &'a mut Database,
    cycle: Cycle,
    ready: VecDeque<i64>,
    claimed: VecDeque<i64>,
    next_id: i64,
    completed: usize,
    commits: usize,
    checkpoints: Duration,
}

impl<'a> Run<'a> {
    fn new(database: &'a mut Database, request: &Request, cycle: Cycle) -> Result<Self> {
        let backlog = request.row.backlog;
        let waiting = i64::try_from(backlog.waiting)?;
        Ok(Self {
            database,
            cycle,
            ready: (1..=waiting).collect(),
            claimed: VecDeque::new(),
            next_id: waiting + 1,
            completed: 0,
            commits: 0,
            checkpoints: Duration::ZERO,
        })
    }

    /// Completes and submits exactly `count` tasks. The tasks that wait at the end are the backlog.
    fn until_done(&mut self, count: usize) -> Result<()> {
        let mut to_submit = count;
        while self.completed < count {
            let commit = self.cycle.next();
            let unclaimed = count - self.completed - self.claimed.len();
            let completions = commit.completions.min(self.claimed.len());
            let submits = commit.submits.min(to_submit);
            let claims = commit.claims.min(self.ready.len() + submits).min(unclaimed);
            if completions + submits + claims > 0 {
                self.commit(completions, submits, claims)?;
                to_submit -= submits;
            }
        }
        Ok(())
    }

    fn commit(&mut self, completions: usize, submits: usize, claims: usize) -> Result<()> {
        self.database.begin()?;
        if completions > 0 {
            let ids: Vec<i64> = self.claimed.drain(..completions).collect();
            self.database.complete(&ids)?;
        }
        if submits > 0 {
            let ids = self.next_id..self.next_id + i64::try_from(submits)?;
            self.next_id = ids.end;
            self.ready.extend(ids.clone());
            self.database.submit_many(ids)?;
        }
        if claims > 0 {
            let ids: Vec<i64> = self.ready.drain(..claims).collect();
            self.database.claim(&ids)?;
            self.claimed.extend(ids);
        }
        self.database.commit()?;
        self.commits += 1;
        self.completed += completions;
        let before = now();
        self.database.checkpoint_if_due(completions)?;
        self.checkpoints += before.elapsed();
        Ok(())
    }
}
