//! Runs the test programs, several at the same time, the longest first.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Result, anyhow};

use super::harness::ProgramRun;

/// The programs that take longest, in this order. If a long one came last, it would run alone and
/// most of the time wait.
const LONGEST: &[&str] = &[
    "onward-store it",
    "sdk-python",
    "sdk-typescript",
    "onward-cli it",
    "onward it",
    "sdk-ruby",
    "page",
    "onward-server it",
    "onward-zmtp it",
];

/// A program that runs once.
pub(super) struct Job<'a> {
    name: String,
    run: Box<dyn FnOnce() -> Result<ProgramRun> + Send + 'a>,
}

impl<'a> Job<'a> {
    pub(super) fn new(name: &str, run: impl FnOnce() -> Result<ProgramRun> + Send + 'a) -> Self {
        Self { name: name.to_owned(), run: Box::new(run) }
    }
}

/// Runs all jobs, at most `at_once` at the same time. Returns their results in the order of `jobs`.
///
/// # Errors
/// Returns the first error in that order. The other jobs run nevertheless.
pub(super) fn run(jobs: Vec<Job<'_>>, at_once: usize) -> Result<Vec<ProgramRun>> {
    let count = jobs.len();
    let waiting = Mutex::new(longest_first(jobs));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || -> Vec<(usize, Result<ProgramRun>)> {
        std::iter::from_fn(next).map(|(index, job)| (index, (job.run)())).collect()
    };
    let mut ended = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once.min(count)).map(|_| scope.spawn(&work)).collect();
        let results =
            workers.into_iter().map(|worker| worker.join().map_err(|_| anyhow!("a test program's reader panicked")));
        results.collect::<Result<Vec<_>>>()
    })?
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    ended.sort_by_key(|(index, _)| *index);
    ended.into_iter().map(|(_, result)| result).collect()
}

fn longest_first(jobs: Vec<Job<'_>>) -> VecDeque<(usize, Job<'_>)> {
    let place = |job: &Job<'_>| LONGEST.iter().position(|name| *name == job.name).unwrap_or(LONGEST.len());
    let mut jobs: Vec<_> = jobs.into_iter().enumerate().collect();
    jobs.sort_by_key(|(_, job)| place(job));
    jobs.into()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::test::harness;

    const MINUTE: Duration = Duration::from_secs(60);

    fn ran(name: &str) -> Result<ProgramRun> {
        harness::run(name, &mut Command::new("true"), MINUTE)
    }

    fn names(ran: &[ProgramRun]) -> Vec<&str> {
        ran.iter().map(|ran| ran.name.as_str()).collect()
    }

    #[test]
    fn results_return_in_the_order_of_the_jobs() {
        let jobs = ["short", "page", "onward-store it"].map(|name| Job::new(name, move || ran(name)));
        assert_eq!(names(&run(jobs.into(), 2).unwrap()), ["short", "page", "onward-store it"]);
    }

    #[test]
    fn a_long_job_starts_before_a_short_one() {
        let order = Mutex::new(Vec::new());
        let jobs = ["short", "page", "onward-store it"].map(|name| {
            let order = &order;
            Job::new(name, move || {
                order.lock().unwrap().push(name);
                ran(name)
            })
        });
        run(jobs.into(), 1).unwrap();
        assert_eq!(order.into_inner().unwrap(), ["onward-store it", "page", "short"]);
    }

    #[test]
    fn two_jobs_run_at_the_same_time() {
        let (sender, receiver) = mpsc::channel();
        // The first one ends only if the second one runs meanwhile.
        let first = Job::new("first", move || {
            receiver.recv_timeout(MINUTE)?;
            ran("first")
        });
        let second = Job::new("second", move || {
            sender.send(())?;
            ran("second")
        });
        assert_eq!(names(&run(vec![first, second], 2).unwrap()), ["first", "second"]);
    }

    #[test]
    fn an_error_of_one_job_lets_the_others_run() {
        let (sender, receiver) = mpsc::channel();
        let fails = Job::new("fails", || Err(anyhow!("on purpose")));
        let runs = Job::new("runs", move || {
            sender.send(())?;
            ran("runs")
        });
        assert!(run(vec![fails, runs], 1).unwrap_err().to_string().contains("on purpose"));
        assert_eq!(receiver.try_recv(), Ok(()));
    }
}
