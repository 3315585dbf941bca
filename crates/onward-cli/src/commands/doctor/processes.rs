//! Checks of the processes that use the store, and of the limits that the system sets them.

use std::path::Path;
use std::time::Duration;

use onward_store::{LockHolder, SqliteStore};

use super::finding::Finding;

/// The number of checks for the holder of the write lock. A working process releases the lock in
/// between.
const LOOKS: u32 = 10;

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Checks whether a process keeps the write lock. Returns `None` if the file does not exist.
pub(super) async fn lock(path: &Path) -> Option<Finding> {
    if !path.is_file() {
        return None;
    }
    Some(match holder(path).await {
        None => Finding::ok("lock", "no process keeps the write lock"),
        Some(holder) => Finding::warn(
            "lock",
            format!("{holder} keeps the write lock of the store"),
            "reads continue and writes wait; if it does not release the lock, end its transaction or the process",
        ),
    })
}

/// Returns the process that holds the write lock at every check.
async fn holder(path: &Path) -> Option<LockHolder> {
    let first = SqliteStore::lock_holder(path)?;
    for _ in 1..LOOKS {
        tokio::time::sleep(LOOK_EVERY).await;
        SqliteStore::lock_holder(path).filter(|holder| *holder == first)?;
    }
    Some(first)
}

/// Checks whether a process can be woken when another process writes.
pub(super) fn watch(path: &Path) -> Finding {
    match SqliteStore::check_watch(path) {
        Ok(()) => Finding::ok("watch", "a process can be woken when another one writes"),
        Err(error) => Finding::warn(
            "watch",
            error.to_string(),
            "nothing is lost without it; a worker starts work up to 1 s later",
        ),
    }
}
