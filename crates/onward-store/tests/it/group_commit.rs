//! Concurrent submits share a commit.

use std::time::Duration;

use onward_store::{Durability, NewTask, SqliteStore, Store, StoreReads, TaskFilter, Write};

/// The number of concurrent callers.
const CALLERS: u64 = 64;

/// The number of calls of each caller.
const CALLS: u64 = 30;

/// The time limit of the whole test.
const PATIENCE: Duration = Duration::from_secs(120);

/// Shows: T1, B5
/// Beats: single-commits
#[tokio::test]
async fn submits_of_one_call_are_one_commit() {
    for class in [Durability::Full, Durability::Normal] {
        let (store, _directory) = open(class).await;
        let before = store.commit_counts().commits;
        store.apply((0..CALLERS).map(|_| submit()).collect()).await.unwrap();
        store.apply(vec![Write::All((0..CALLERS).map(|_| submit()).collect())]).await.unwrap();
        assert_eq!(store.commit_counts().commits - before, 2, "{class}");
    }
}

/// Shows: B5
/// Beats: single-commits
#[tokio::test]
async fn callers_who_submit_at_the_same_moment_share_commits() {
    for class in [Durability::Full, Durability::Normal] {
        let (store, _directory) = open(class).await;
        let commits = commits_of_callers(store).await;
        assert!(commits <= CALLERS / 4, "{class}: {CALLERS} submits took {commits} commits");
    }
}

/// After a lone caller, the writer no longer waits for others before each commit. It must still
/// notice when others come.
///
/// Shows: B5
/// Beats: single-commits
#[tokio::test]
async fn callers_who_come_after_one_was_long_alone_share_commits() {
    let (store, _directory) = open(Durability::Normal).await;
    for _ in 0..CALLERS + 1 {
        store.apply(vec![submit()]).await.unwrap();
    }
    let commits = commits_of_callers(store).await;
    assert!(commits <= CALLERS / 4, "{CALLERS} submits took {commits} commits");
}

/// Returns the number of commits in which many callers submit a task each.
async fn commits_of_callers(store: SqliteStore) -> u64 {
    let store = std::sync::Arc::new(store);
    let before = store.commit_counts().commits;
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let store = std::sync::Arc::clone(&store);
        callers.spawn(async move { store.apply(vec![submit()]).await.unwrap() });
    }
    callers.join_all().await;
    store.commit_counts().commits - before
}

/// Shows: B5
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_caller_gets_its_outcomes_whichever_caller_commits() {
    for class in [Durability::Full, Durability::Normal] {
        let (store, _directory) = open(class).await;
        let store = std::sync::Arc::new(store);
        let mut callers = tokio::task::JoinSet::new();
        for caller in 0..CALLERS {
            let store = std::sync::Arc::clone(&store);
            // Some calls are small enough that a caller commits them itself; others are larger.
            let writes = if caller % 8 == 0 { 40 } else { 1 + caller % 3 };
            callers.spawn(async move {
                for _ in 0..CALLS {
                    store.apply((0..writes).map(|_| submit()).collect()).await.unwrap();
                }
                writes * CALLS
            });
        }
        let submitted = tokio::time::timeout(PATIENCE, callers.join_all()).await.expect("nobody waits for ever");
        assert_eq!(store.count(TaskFilter::default()).await.unwrap(), submitted.iter().sum::<u64>(), "{class}");
    }
}

async fn open(class: Durability) -> (SqliteStore, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::options().durability(class).open(directory.path().join("onward.db")).await.unwrap();
    (store, directory)
}

fn submit() -> Write {
    Write::Submit(Box::new(NewTask::new("mail").unwrap()))
}
