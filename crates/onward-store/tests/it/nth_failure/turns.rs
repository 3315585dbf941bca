//! Fails each operation in turn.
//!
//! `ONWARD_ROUNDS` sets the length of the scenario: four tasks a round (default: 1). Nothing here
//! is random, so the seed in the lines for `cargo xtask soak` is always 0.

use onward_store::{Durability, SqliteOptions, SqliteStore};
use onward_testkit::Fault;
use onward_testkit::soak::{self, Tally};

use super::plan::Armed;
use super::twins::{Earlier, Twins};

/// Shows: T21, B5
/// Beats: wedged-store
#[tokio::test]
async fn no_failing_operation_in_class_full_loses_or_wedges_anything() {
    fail_each_operation_in_turn(SqliteStore::options().durability(Durability::Full)).await;
}

/// Shows: T21, B5
/// Beats: wedged-store
#[tokio::test]
async fn no_failing_operation_in_class_normal_loses_or_wedges_anything() {
    fail_each_operation_in_turn(SqliteStore::options().durability(Durability::Normal)).await;
}

/// A separate thread copies the log back, so the operation that is the n-th varies here.
///
/// Shows: T21, B5
/// Beats: wedged-store
#[tokio::test]
async fn no_failing_operation_loses_or_wedges_anything_while_the_log_is_copied_back() {
    fail_each_operation_in_turn(SqliteStore::options().durability(Durability::Normal).long_log(LONG_LOG)).await;
}

/// Lock faults are left out, because opening a store really waits for a lock that another process
/// holds.
///
/// Shows: T21, B5
#[tokio::test]
async fn no_operation_that_fails_while_a_store_is_opened_changes_it() {
    for (fault, for_good) in WAYS.into_iter().filter(|(fault, _)| matches!(fault, Fault::Io | Fault::Full)) {
        let mut number = 1;
        while open_again(Armed { fault, number, for_good }).await {
            number += 1;
        }
        assert!(number > 1, "{fault:?} met nothing");
    }
}

/// Opens a store while an operation fails. Returns whether the failure happened.
async fn open_again(armed: Armed) -> bool {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().canonicalize().expect("the directory is there").join("onward.db");
    let earlier = Earlier::leave(&path, SqliteStore::options()).await;
    let (has_failed, difference) = earlier.open_again(&path, armed).await;
    assert_eq!(difference, None, "{armed:?}");
    has_failed
}

/// The number of log pages after which the log is copied back: after every call or two.
const LONG_LOG: i32 = 8;

/// The faults, and whether each lasts. A timeout needs no lasting form, because a lock that is held
/// for good is busy for good.
const WAYS: [(Fault, bool); 7] = [
    (Fault::Io, false),
    (Fault::Io, true),
    (Fault::Full, false),
    (Fault::Full, true),
    (Fault::Busy, false),
    (Fault::Busy, true),
    (Fault::Timeout, false),
];

async fn fail_each_operation_in_turn(options: SqliteOptions) {
    let rounds = soak::number("ONWARD_ROUNDS").map_or(1, |rounds| usize::try_from(rounds).expect("a few"));
    let mut tally = Tally::default();
    for (fault, for_good) in WAYS {
        let mut number = 1;
        while play(options.clone(), Armed { fault, number, for_good }, rounds, &mut tally).await {
            number += 1;
        }
        assert!(number > 1, "{fault:?} met nothing");
    }
    println!("{tally}");
    assert_eq!((tally.lost, tally.duplicated), (0, 0), "{tally}");
}

/// Plays the scenario while an operation fails. Returns whether the failure happened.
async fn play(options: SqliteOptions, armed: Armed, rounds: usize, tally: &mut Tally) -> bool {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().canonicalize().expect("the directory is there").join("onward.db");
    let mut twins = Twins::open(&path, options, armed).await;
    twins.play(rounds).await;
    let has_failed = twins.has_failed();
    tally.attempted += twins.calls;
    tally.acknowledged += twins.calls - twins.failed_calls;
    tally.recovered += u64::from(has_failed);
    // If no call failed, comparing the reopened store is enough.
    let now = if twins.failed_calls > 0 { twins.difference().await } else { None };
    let reopened = twins.difference_when_reopened(&path).await;
    if let Some(difference) = now.or(reopened) {
        tally.lost += 1;
        panic!("{armed:?}: the store differs from one that was never told of the calls that failed:\n{difference}");
    }
    has_failed
}
