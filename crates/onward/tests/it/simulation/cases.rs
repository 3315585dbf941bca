//! Runs of the simulation. `ONWARD_SEEDS` sets their number, `ONWARD_SEED` the first seed, and
//! `ONWARD_TRACE` prints each event and each call of the store.
//!
//! A seed repeats a run exactly: the work, the faults, and the order of everything. The runs share
//! the threads of the machine, and each of them stays in one thread.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use onward_testkit::soak::{self, Tally};

use super::trace::{Trace, first_difference};
use super::world::World;

/// The number of seeds without `ONWARD_SEEDS`.
const SEEDS: u64 = 2_000;

/// The number of seeds whose traces are compared.
const REPEATED_SEEDS: u64 = 50;

/// Shows: Q1, Q3, D1, W1
///
/// Beats: unchecked-fence, early-acknowledgement, endless-lease
///
/// Beats: step-decided-twice, limit-exceeded-by-one
#[test]
fn a_cluster_loses_and_doubles_nothing_and_goes_on_after_faults() {
    let (first, count) = (soak::seed(), soak::number("ONWARD_SEEDS").unwrap_or(SEEDS));
    let runs = Runs { first, count, next: AtomicU64::new(0), tasks: AtomicU64::new(0) };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let failure = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| runs.work())).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).next()
    });
    if let Some(failure) = failure {
        resume_unwind(failure);
    }
    let tasks = runs.tasks.into_inner();
    println!("{}", Tally { seed: first, attempted: tasks, acknowledged: tasks, ..Tally::default() });
}

#[test]
fn a_seed_repeats_its_run_exactly() {
    let first = soak::seed();
    let seeds: Vec<u64> = (0..REPEATED_SEEDS).map(|number| first.wrapping_add(number)).collect();
    // Another thread, in another order, so that nothing that an earlier run left can be the same.
    let again = thread::spawn({
        let seeds = seeds.clone();
        move || seeds.into_iter().rev().map(traced).collect::<Vec<_>>()
    });
    let traces: Vec<String> = seeds.iter().copied().map(traced).collect();
    let again = again.join().unwrap();
    for (seed, (one, other)) in seeds.iter().zip(traces.iter().zip(again.iter().rev())) {
        assert!(one.lines().count() > 100, "the trace of seed {seed} has {} lines", one.lines().count());
        if let Some(difference) = first_difference(one, other) {
            panic!("two runs of seed {seed} differ in {difference}");
        }
    }
}

/// Returns the trace of a run.
fn traced(seed: u64) -> String {
    let trace = Arc::new(Trace::kept());
    World::new(seed, Arc::clone(&trace)).run();
    trace.lines()
}

/// The runs of one test, which several threads share.
struct Runs {
    first: u64,
    count: u64,
    /// The number of the next run.
    next: AtomicU64,
    tasks: AtomicU64,
}

impl Runs {
    /// Runs one seed after the other until all are taken. Returns the failure of a run.
    fn work(&self) -> Option<Box<dyn Any + Send>> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                return None;
            }
            if let Err(failure) = catch_unwind(AssertUnwindSafe(|| self.run(self.first.wrapping_add(number)))) {
                // The other threads stop after the runs that they have begun.
                self.next.fetch_max(self.count, Ordering::Relaxed);
                println!("failed with seed {}, after {number} seeds", self.first.wrapping_add(number));
                return Some(failure);
            }
        }
    }

    fn run(&self, seed: u64) {
        let tasks = World::new(seed, Arc::new(Trace::from_environment())).run();
        self.tasks.fetch_add(tasks, Ordering::Relaxed);
    }
}
