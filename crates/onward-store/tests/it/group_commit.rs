//! What is submitted together is committed together.

use onward_store::{Durability, NewTask, SqliteStore, Store, Write};

/// How many callers submit at once.
const CALLERS: u64 = 64;

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
        let store = std::sync::Arc::new(store);
        let before = store.commit_counts().commits;
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..CALLERS {
            let store = std::sync::Arc::clone(&store);
            callers.spawn(async move { store.apply(vec![submit()]).await.unwrap() });
        }
        callers.join_all().await;
        let commits = store.commit_counts().commits - before;
        assert!(commits <= CALLERS / 4, "{class}: {CALLERS} submits took {commits} commits");
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
