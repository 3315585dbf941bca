//! The trigger that wakes the housekeeping thread: when the write-ahead log is long, and for its
//! other checks.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use crate::api::error::Result;

/// The number of pages at which the log is long: 32 MiB of 4 KiB pages. A log of twice that size
/// makes a new store slower (`docs/design/0010-sqlite-log-and-processes-rejected.md`).
pub(in crate::sqlite) const LONG_LOG: i32 = 8192;

/// The number of pages below which the log is never long, however full the disk is, because each
/// copy syncs.
const SHORT_LOG: i32 = 16;

/// The size of a page of the log.
const PAGE_BYTES: u64 = 4096;

/// The interval at which peers are checked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Wakes the housekeeping thread.
#[derive(Debug)]
pub(in crate::sqlite) struct CheckpointTrigger {
    /// The log.
    log: PathBuf,
    /// The number of pages at which the log is long if there is room on the disk.
    most: i32,
    /// The number of pages at which the log is long on this disk.
    long: AtomicI32,
    /// The length of the log at the last commit, in pages.
    pages: AtomicI32,
    /// True if the thread must copy the log.
    copy: AtomicBool,
    /// True if the writer must copy the log before it continues.
    overdue: AtomicBool,
    /// True if the thread must check. It stays true until the thread has seen it.
    fired: Mutex<bool>,
    /// Notified when `fired` is set.
    changed: Condvar,
    /// True if the thread sleeps until it is woken, instead of checking once a second.
    sleeps: AtomicBool,
    /// True if the thread must end.
    closed: AtomicBool,
}

/// The reason for which the thread was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Reason {
    /// The trigger fired. Its caller has notified the engine.
    Fired,
    /// The poll interval has passed.
    Time,
}

impl CheckpointTrigger {
    /// Creates a trigger for a log that is long from `most` pages on.
    pub(in crate::sqlite) fn new(log: PathBuf, most: i32) -> Self {
        let trigger = Self {
            log,
            most: most.max(1),
            long: AtomicI32::new(1),
            pages: AtomicI32::new(0),
            copy: AtomicBool::new(false),
            overdue: AtomicBool::new(false),
            fired: Mutex::new(false),
            changed: Condvar::new(),
            sleeps: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        };
        trigger.fit_disk();
        trigger
    }

    /// Adapts the limit to the free room on the disk: the log must be copied while there is room
    /// for the copy. All of its pages may be new to the database.
    pub(super) fn fit_disk(&self) {
        let long = room_for_log(&self.log).map_or(self.most, |room| room / 3);
        self.long.store(long.max(SHORT_LOG).min(self.most), Ordering::Relaxed);
    }

    /// Makes each commit on a connection report the length of the log.
    pub(in crate::sqlite) fn watch(self: &Arc<Self>, connection: &mut Connection) -> Result<()> {
        let trigger = Arc::clone(self);
        let hook = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            trigger.committed(pages);
            Ok(())
        };
        Ok(connection.wal_hook(Some(hook))?)
    }

    /// Records the length of the log after a commit, and wakes the thread if the log has become
    /// long.
    fn committed(&self, pages: i32) {
        let before = self.pages.swap(pages, Ordering::Relaxed);
        let long = self.long.load(Ordering::Relaxed);
        let passes = |length| pages / length > before / length;
        // The writer copies only if there is little room. Otherwise the log may grow while the
        // thread copies it.
        if long < self.most && passes(long + long / 2) {
            self.overdue.store(true, Ordering::Release);
        }
        // Fires once for each multiple of the limit. So the copy is tried again if a reader keeps
        // the log from beginning again, or another process fails to copy it.
        if passes(long) {
            self.copy.store(true, Ordering::Release);
            self.fire();
        }
    }

    /// Returns the length of the log, in pages.
    pub(in crate::sqlite) fn pages(&self) -> i32 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Returns true, once, if the log is to be copied.
    pub(in crate::sqlite) fn take_copy(&self) -> bool {
        self.copy.swap(false, Ordering::AcqRel)
    }

    /// Returns true, once, if the writer must copy the log.
    pub(in crate::sqlite) fn take_overdue(&self) -> bool {
        self.overdue.swap(false, Ordering::AcqRel)
    }

    /// Wakes the thread.
    pub(in crate::sqlite) fn fire(&self) {
        *self.fired.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Fires if the thread sleeps. A thread that checks once a second needs no wake-up for each of
    /// the thousands of pages that a peer's checkpoint writes.
    pub(in crate::sqlite) fn fire_if_asleep(&self) {
        if self.sleeps.load(Ordering::Relaxed) {
            self.fire();
        }
    }

    /// Ends the thread.
    pub(in crate::sqlite) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.fire();
    }

    /// Waits until the trigger fires. Unless `alone`, it also returns when the poll interval has
    /// passed. Returns `None` if the thread must end.
    pub(in crate::sqlite) fn wait(&self, alone: bool) -> Option<Reason> {
        self.sleeps.store(alone, Ordering::Relaxed);
        let fired = self.fired.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fired = if alone {
            self.changed.wait_while(fired, |fired| !*fired).unwrap_or_else(PoisonError::into_inner)
        } else {
            let waited = self.changed.wait_timeout_while(fired, POLL_INTERVAL, |fired| !*fired);
            waited.unwrap_or_else(PoisonError::into_inner).0
        };
        let reason = if std::mem::take(&mut *fired) { Reason::Fired } else { Reason::Time };
        (!self.closed.load(Ordering::Acquire)).then_some(reason)
    }
}

/// Returns the number of pages that the log and the database can grow to: the free pages and those
/// of the log. `None` if the file system does not report it.
fn room_for_log(log: &Path) -> Option<i32> {
    let room = rustix::fs::statvfs(log.parent()?).ok().filter(|room| room.f_blocks > 0)?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let length = std::fs::metadata(log).map_or(0, |log| log.len());
    i32::try_from(free.saturating_add(length) / PAGE_BYTES).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns for each commit, given by the length of the log after it, if the trigger fires.
    fn fires<const N: usize>(lengths: [i32; N]) -> [bool; N] {
        let trigger = CheckpointTrigger::new(PathBuf::new(), 10);
        lengths.map(|pages| {
            trigger.committed(pages);
            std::mem::take(&mut *trigger.fired.lock().unwrap())
        })
    }

    #[test]
    fn a_log_that_grows_past_its_length_rings_once() {
        assert_eq!(fires([9, 12, 15]), [false, true, false]);
    }

    #[test]
    fn a_log_that_could_not_restart_triggers_again_at_twice_its_length_even_if_no_commit_ends_there() {
        assert_eq!(fires([12, 19, 23, 26]), [true, false, true, false]);
    }

    #[test]
    fn a_log_that_restarted_triggers_when_it_is_long_again() {
        assert_eq!(fires([12, 3, 11]), [true, false, true]);
    }
}
