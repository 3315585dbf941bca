//! Housekeeping on a separate thread: it copies the write-ahead log into the database, and detects
//! processes that come and go.
//!
//! It copies most of the log on a connection of its own while the writer continues, which SQLite
//! 3.51.3 and later allow without harm. Further passes copy the pages that were added during the
//! previous one. The last few pages are copied while no process writes. Only then can the log begin
//! again instead of growing without end. A write waits that long at such a moment.
//!
//! While other processes write to the file, or the system does not report their writes, the thread
//! checks once a second. It checks if these processes still live, and if there is a commit without
//! a notification. Alone, it sleeps until it is woken.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;

use crate::api::error::{Error, Result};
use crate::sqlite::commit::committer::Committer;
use crate::sqlite::file_layer::store_files::leave_log;
use crate::sqlite::processes::checkpoint_trigger::{CheckpointTrigger, Reason};

/// The most pages that are copied while all writers are blocked, unless pages arrive faster than
/// they can be copied.
const REST: i32 = 256;

/// The most passes over the log before writers are blocked.
const PASSES: usize = 6;

/// Starts the thread, which ends when the trigger is closed.
pub(in crate::sqlite) fn start(
    connection: Connection,
    trigger: Arc<CheckpointTrigger>,
    committer: Arc<Mutex<Committer>>,
) -> Result<JoinHandle<()>> {
    let run = move || {
        let mut alone = committer.lock().unwrap_or_else(PoisonError::into_inner).is_woken_by_all_writes();
        while let Some(reason) = trigger.wait(alone) {
            if has_lost_file(&committer, &connection) {
                // The file is lost, so there is nothing to maintain. A caller gets the error from
                // its next call.
                alone = true;
                continue;
            }
            if trigger.take_copy() {
                copy_log(&connection, &trigger, &committer);
            }
            let mut committer = committer.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = committer.update_peers(reason == Reason::Time)
                && !error.is_replaced()
            {
                tracing::warn!(%error, "it could not be told who else works on this store; it is tried again");
            }
            if reason == Reason::Time
                && let Err(error) = committer.notify_foreign_writes().and_then(|()| committer.notify_missed_tasks())
            {
                tracing::warn!(%error, "it could not be told whether others have added tasks; it is tried again");
            }
            alone = committer.is_woken_by_all_writes();
        }
    };
    std::thread::Builder::new()
        .name("onward-housekeeping".into())
        .spawn(run)
        .map_err(|error| Error::io("no thread could be started for the store").caused_by(error))
}

/// Returns true if the files are no longer those that were opened. It then does not change their
/// log, and wakes the waiting callers of this store.
fn has_lost_file(committer: &Mutex<Committer>, connection: &Connection) -> bool {
    let mut committer = committer.lock().unwrap_or_else(PoisonError::into_inner);
    if committer.check_file().is_ok() {
        return false;
    }
    leave_log(connection);
    committer.wake_all();
    true
}

/// Copies the log, and adapts to the room that is left on the disk. The file is not watched
/// meanwhile, because the system would report each page that is written to it.
fn copy_log(connection: &Connection, trigger: &CheckpointTrigger, committer: &Mutex<Committer>) {
    let locked = || committer.lock().unwrap_or_else(PoisonError::into_inner);
    locked().stop_file_watch();
    if copy_most(connection, trigger) {
        copy_rest(connection, committer);
    }
    trigger.fit_disk();
    locked().resume_file_watch();
    // Another process may have replaced the file while it was not watched.
    trigger.fire();
}

/// Copies while writers continue, until few pages are left. Returns false if a pass makes no
/// progress, because another process copies or a reader needs the rest.
fn copy_most(connection: &Connection, trigger: &CheckpointTrigger) -> bool {
    let mut copied = 0;
    for _ in 0..PASSES {
        let before = std::mem::replace(&mut copied, checkpoint_wal(connection));
        if copied <= before {
            return false;
        }
        if trigger.pages() - copied <= REST {
            break;
        }
    }
    true
}

/// Copies the remaining pages while all writers are blocked, so that the next writer begins the log
/// again.
fn copy_rest(connection: &Connection, committer: &Mutex<Committer>) {
    let mut committer = committer.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = committer.while_no_process_writes(|| checkpoint_wal(connection))
        && !error.is_replaced()
    {
        tracing::warn!(%error, "the write-ahead log could not be restarted; it is tried again when it has grown");
    }
}

/// Copies the pages that no reader needs. Returns the number of pages of the log that are copied in
/// all. A failure loses nothing: the log stays, and the next checkpoint tries again.
pub(in crate::sqlite) fn checkpoint_wal(connection: &Connection) -> i32 {
    match connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get("checkpointed")) {
        Ok(copied) => copied,
        Err(failure) => {
            tracing::warn!(%failure, "the write-ahead log could not be copied back; it is tried again");
            0
        }
    }
}
