//! The cost of a prune behind tasks with a retention of their own, counted in steps of SQLite.

use std::time::Duration;

use onward_store::{NewTask, Outcome, Prune, SqliteStore, Store, TaskId, Write};

use crate::steps::Steps;

/// The number of calls in which such a task ended.
const MANY: i64 = 1000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Otherwise a store that is pruned every minute would be read as a whole every minute.
///
/// Shows: Q6, B8
#[tokio::test]
async fn a_prune_passes_over_tasks_that_say_how_long_they_are_kept_once() {
    let (few, many) = (second_prune_behind(1).await, second_prune_behind(MANY).await);
    assert!(few > 0, "steps are counted");
    assert!(many <= few + few / 10, "a prune takes {many} steps behind {MANY} such tasks, and {few} behind one");
}

/// Returns the steps of a prune after another prune has passed over this many tasks.
async fn second_prune_behind(tasks: i64) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let steps = Steps::of(&path);
    let store = SqliteStore::open(&path).await.unwrap();
    for number in 1..=tasks {
        let kept = NewTask { retention: Some(DAY), ..NewTask::new("mail").unwrap() };
        let ends = vec![Write::Submit(Box::new(kept)), Write::Cancel { task: TaskId(number) }];
        store.apply(ends).await.unwrap();
    }
    prune(&store).await;
    let before = steps.so_far();
    prune(&store).await;
    steps.so_far() - before
}

async fn prune(store: &SqliteStore) {
    let prune = Prune { older_than: Some(Duration::ZERO), keep: None, limit: 1000 };
    let pruned = store.apply(vec![Write::Prune(prune)]).await.unwrap();
    assert_eq!(pruned, [Outcome::Removed { tasks: 0, more: false }]);
}
