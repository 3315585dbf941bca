//! Runs of the simulation. `ONWARD_SEEDS` sets their number, `ONWARD_SEED` the first seed, and
//! `ONWARD_TRACE` prints each commit.
//!
//! A seed repeats the work and the faults. It does not repeat the order in which tokio wakes
//! several waiters of one channel: tokio draws it from a generator of its own. A failure may need
//! some runs of its seed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use onward_testkit::soak::{self, Tally};

use super::world::World;

/// The number of seeds without `ONWARD_SEEDS`.
const SEEDS: u64 = 500;

/// Shows: Q1, Q3, D1, W1
#[test]
fn a_cluster_loses_and_doubles_nothing_and_goes_on_after_faults() {
    let (first, count) = (soak::seed(), soak::number("ONWARD_SEEDS").unwrap_or(SEEDS));
    let mut tally = Tally { seed: first, ..Tally::default() };
    for seed in first..first.saturating_add(count) {
        let tasks = catch_unwind(AssertUnwindSafe(|| World::new(seed).run())).unwrap_or_else(|failure| {
            println!("failed with seed {seed}, after {} seeds", seed - first);
            resume_unwind(failure)
        });
        tally.attempted += tasks;
        tally.acknowledged += tasks;
    }
    println!("{tally}");
}
