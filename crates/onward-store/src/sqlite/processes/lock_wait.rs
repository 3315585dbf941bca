//! Waits for the lock of a file while another process holds it.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::api::error::Result;
use crate::sqlite::processes::write_lock::{Progress, WriteLock};

/// The pauses between attempts: the number of pauses of each length. SQLite's own pauses grow to a
/// tenth of a second. A process that commits repeatedly releases the lock hundreds of times in such
/// a pause, and a connection that sleeps through it waits for seconds.
const PAUSES: [(u32, Duration); 2] = [(100, Duration::from_micros(100)), (2000, Duration::from_micros(500))];

/// The length of all further pauses.
const LAST_PAUSE: Duration = Duration::from_millis(2);

/// The time between two checks for commits of other processes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The number of checks in a row without a commit after which a process gives up. A process that
/// holds the lock so long is not expected to release it.
pub(super) const MAX_POLLS: u32 = 30;

/// The progress of the holders of the lock, and the number of checks without progress.
#[derive(Debug, Default)]
struct RetryBudget {
    /// The progress at the last poll.
    seen: Option<Progress>,
    /// The time since the last poll.
    since_poll: Duration,
    /// The number of checks without progress.
    polls: u32,
}

impl RetryBudget {
    /// Returns the pause after `tries` retries; `None` to give up.
    fn pause(&mut self, tries: u32, progress: impl FnOnce() -> Progress) -> Option<Duration> {
        let pause = pause_after(tries);
        if tries == 0 {
            *self = Self { seen: Some(progress()), ..Self::default() };
        } else if self.since_poll >= POLL_INTERVAL {
            let now = Some(progress());
            self.polls = if self.seen == now { self.polls + 1 } else { 0 };
            (self.seen, self.since_poll) = (now, Duration::ZERO);
        }
        self.since_poll += pause;
        (self.polls < MAX_POLLS).then_some(pause)
    }
}

/// Makes a connection wait for locks of other processes: as long as these commit, and half a minute
/// without a commit.
pub(in crate::sqlite) fn wait_for_locks(connection: &mut Connection, store: &Path) -> Result<()> {
    let (lock, mut budget) = (WriteLock::of(store), RetryBudget::default());
    connection.busy_handler(Some(move |tries: i32| {
        let pause = budget.pause(tries.unsigned_abs(), || lock.progress());
        pause.into_iter().for_each(sleep);
        pause.is_some()
    }))?;
    Ok(())
}

/// Returns the pause after a number of retries. It is short at first, because most commits are
/// short.
fn pause_after(tries: u32) -> Duration {
    let mut before = 0;
    let pause = PAUSES.iter().find_map(|(count, pause)| {
        before += count;
        (tries < before).then_some(*pause)
    });
    pause.unwrap_or(LAST_PAUSE)
}

/// Pauses between two tries.
#[expect(clippy::disallowed_methods, reason = "SQLite sends no notification when a lock becomes free")]
pub(in crate::sqlite) fn sleep(pause: Duration) {
    std::thread::sleep(pause);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how long a lock is awaited if each check finds this progress; `None` if without end.
    fn waited(mut progress: impl FnMut() -> Progress) -> Option<Duration> {
        let (mut budget, mut waited) = (RetryBudget::default(), Duration::ZERO);
        for tries in 0..100_000 {
            let Some(pause) = budget.pause(tries, &mut progress) else { return Some(waited) };
            waited += pause;
        }
        None
    }

    #[test]
    fn no_pause_is_so_long_that_a_busy_neighbour_commits_many_times_in_it() {
        assert!(pause_after(u32::MAX) <= Duration::from_millis(2));
        assert!(pause_after(0) <= Duration::from_micros(100));
    }

    #[test]
    fn a_lock_that_is_never_free_is_given_up_after_half_a_minute() {
        let still = WriteLock::of(Path::new("/nowhere/onward.db"));
        let waited = waited(|| still.progress()).unwrap();
        assert!((29..=32).contains(&waited.as_secs()), "{waited:?}");
    }

    #[test]
    fn a_lock_that_others_take_in_turns_is_waited_for_without_an_end() {
        let directory = tempfile::tempdir().unwrap();
        let (lock, mut commits) = (WriteLock::of(&directory.path().join("onward.db")), 0);
        let committing = || {
            commits += 1;
            std::fs::write(directory.path().join("onward.db-wal"), vec![0; commits]).unwrap();
            lock.progress()
        };
        assert_eq!(waited(committing), None);
    }
}
