//! Housekeeping on a separate thread: it copies the write-ahead log back, and detects processes
//! that come and go.
//!
//! The bulk of the log is copied on a separate connection, while the writer continues; SQLite
//! 3.51.3 and later allow that without harm. What was added in the meantime is copied in further
//! passes, each shorter than the one before. The last few pages are copied while neither this
//! process nor another writes, so that the log can start again instead of growing without end. A
//! task waits that long at such a moment.
//!
//! While other processes write to the file, or the system does not report their writes, the thread
//! looks once a second whether these processes still live and whether they left a commit without a
//! notification. Alone, it sleeps until it is woken.

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

/// The most passes over the log before writers are held off.
const PASSES: usize = 6;

/// Starts the thread; it ends when the trigger is closed.
pub(in crate::sqlite) fn start(
    connection: Connection,
    trigger: Arc<CheckpointTrigger>,
    committer: Arc<Mutex<Committer>>,
) -> Result<JoinHandle<()>> {
    let run = move || {
        let mut alone = committer.lock().unwrap_or_else(PoisonError::into_inner).is_woken_by_all_writes();
        while let Some(reason) = trigger.wait(alone) {
            if has_lost_file(&committer, &connection) {
                // The file is lost, so there is nothing left to maintain. A waiter of this store
                // gets the error from its next call.
                alone = true;
                continue;
            }
            if trigger.take_copy() {
                if copy_most(&connection, &trigger) {
                    copy_rest(&connection, &committer);
                }
                trigger.fit_disk();
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

/// Returns true if the files are no longer those that were opened. Then their log stays as it is,
/// and the waiters of this store are woken.
fn has_lost_file(committer: &Mutex<Committer>, connection: &Connection) -> bool {
    let mut committer = committer.lock().unwrap_or_else(PoisonError::into_inner);
    if committer.check_file().is_ok() {
        return false;
    }
    leave_log(connection);
    committer.wake_all();
    true
}

/// Copies while writers continue, until little is left. Returns false if a pass gets no further,
/// because another process copies or a reader needs the rest.
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

/// Copies the remaining pages while all writers are blocked: the next writer begins the log again.
fn copy_rest(connection: &Connection, committer: &Mutex<Committer>) {
    let mut committer = committer.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = committer.while_no_process_writes(|| checkpoint_wal(connection))
        && !error.is_replaced()
    {
        tracing::warn!(%error, "the write-ahead log could not be restarted; it is tried again when it has grown");
    }
}

/// Copies the pages that no reader needs, and returns the number of pages of the log that have been
/// copied in all. A failure loses nothing: the log stays as it is, and the next checkpoint tries
/// again.
pub(in crate::sqlite) fn checkpoint_wal(connection: &Connection) -> i32 {
    match connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get("checkpointed")) {
        Ok(copied) => copied,
        Err(failure) => {
            tracing::warn!(%failure, "the write-ahead log could not be copied back; it is tried again");
            0
        }
    }
}
