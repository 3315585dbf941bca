//! The write-ahead log does not grow without bound.

use std::io::Read as _;
use std::path::Path;

use onward_store::{Durability, Name, NewTask, SqliteStore, Store as _, TaskState, Write};
use onward_testkit::mount::Mount;

/// The number of pages that makes the log of these tests long.
const LONG: i32 = 50;

/// The number of commits. Each writes a page or more: over a hundred times the length of a long
/// log.
const COMMITS: usize = 6000;

/// Returns the number of restarts of the log, from its header.
fn beginnings(log: &Path) -> u32 {
    let mut header = [0; 16];
    std::fs::File::open(log).unwrap().read_exact(&mut header).unwrap();
    u32::from_be_bytes([header[12], header[13], header[14], header[15]])
}

#[tokio::test]
async fn a_log_to_which_two_stores_write_in_turn_restarts_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let open = || SqliteStore::options().durability(Durability::Normal).long_log(LONG).open(&path);
    let stores = [open().await.unwrap(), open().await.unwrap()];
    let log = directory.path().join("onward.db-wal");
    let before = beginnings(&log);
    for commit in 0..COMMITS {
        let task = NewTask::new("mail").unwrap();
        stores[commit % 2].apply(vec![Write::Submit(Box::new(task))]).await.unwrap();
        if beginnings(&log) > before + 3 {
            return;
        }
    }
    panic!("{COMMITS} commits were added to one log");
}

/// Each call leaves no task and writes a few pages: together far more than the disk has.
#[tokio::test]
async fn a_log_on_a_small_disk_restarts_before_the_disk_is_full() {
    let Some(mount) = Mount::new("4m") else { return };
    let path = mount.path().join("onward.db");
    let store = SqliteStore::options().durability(Durability::Normal).open(&path).await.unwrap();
    for _ in 0..COMMITS {
        let submit = Write::Submit(Box::new(NewTask::new("mail").unwrap()));
        let purge = Write::Purge { queue: Name::new("default").unwrap(), states: vec![TaskState::Waiting], limit: 1 };
        store.apply(vec![submit, purge]).await.unwrap();
    }
}
