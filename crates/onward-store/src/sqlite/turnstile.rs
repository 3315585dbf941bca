//! Processes that write to one file take turns.
//!
//! SQLite gives its write lock to whoever tries first. A process that commits again and again tries again at once, while one that found
//! the lock taken sleeps between its tries and seldom meets the moment in which it is free: it may wait for ten commits of the other.
//! So whoever has neighbours goes through a turnstile to the lock: it holds the turnstile until it has the lock, and who has just
//! committed finds the turnstile closed, and lets those go first.
//!
//! This is for fairness alone: the lock is SQLite's. A process that was stopped within the turnstile holds up nobody for long.

use std::cell::Cell;
use std::fs::{File, TryLockError};
use std::time::Duration;

use super::lock_wait::sleep;

/// How long is waited between two looks whether the turnstile is open.
const PAUSE: Duration = Duration::from_micros(100);

/// How often is looked. Whoever is within goes on as soon as the lock is free; where it does not, it may have been stopped.
const LOOKS: u32 = 100;

/// How many times is passed without a look after the turnstile has not opened.
const PASSES: u32 = 100;

#[derive(Debug)]
pub(super) struct Turnstile {
    /// What is locked; each open store has opened it for itself.
    place: File,
    passes: Cell<u32>,
}

/// A place in the turnstile; dropping it lets the next one in.
#[derive(Debug)]
pub(super) struct Turn<'t>(&'t File);

impl Turnstile {
    pub(super) fn new(place: File) -> Self {
        Self { place, passes: Cell::new(0) }
    }

    /// Waits until the turnstile opens, for some 15 milliseconds at most; `None` if it did not.
    pub(super) fn enter(&self) -> Option<Turn<'_>> {
        if let Some(left) = self.passes.get().checked_sub(1) {
            self.passes.set(left);
            return None;
        }
        for _ in 0..LOOKS {
            match self.place.try_lock() {
                Ok(()) => return Some(Turn(&self.place)),
                Err(TryLockError::WouldBlock) => sleep(PAUSE),
                // Some file systems have no such locks.
                Err(TryLockError::Error(_)) => break,
            }
        }
        self.passes.set(PASSES);
        None
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // What cannot be unlocked is unlocked when the file is closed, and held up nobody for long until then.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::Connection;

    use super::*;
    use crate::outcome::Outcome;
    use crate::sqlite::store::SqliteStore;
    use crate::store::Store as _;
    use crate::task::{NewTask, TaskId};
    use crate::write::Write;

    /// Two processes' turnstiles at one place.
    fn two() -> (tempfile::TempDir, [Turnstile; 2]) {
        let directory = tempfile::tempdir().unwrap();
        let turnstiles = [0, 1].map(|_| Turnstile::new(File::open(directory.path()).unwrap()));
        (directory, turnstiles)
    }

    #[test]
    fn one_is_within_at_a_time() {
        let (_directory, [one, other]) = two();
        let within = one.enter();
        assert!(within.is_some() && other.enter().is_none());
    }

    #[test]
    fn it_opens_when_the_one_within_has_gone_on() {
        let (_directory, [one, other]) = two();
        drop(one.enter());
        assert!(other.enter().is_some());
    }

    #[test]
    fn who_waited_in_vain_waits_no_more_for_a_while() {
        let (_directory, [one, other]) = two();
        let within = one.enter();
        assert!(other.enter().is_none());
        drop(within);
        let passed = (0..PASSES).filter(|_| other.enter().is_none()).count();
        assert_eq!((passed, other.enter().is_some()), (PASSES as usize, true));
    }

    /// A store on a file that others have open; it knows of them.
    async fn open(path: &Path) -> SqliteStore {
        SqliteStore::open(path).await.unwrap()
    }

    async fn submit(store: &SqliteStore) -> TaskId {
        let submit = Write::Submit(Box::new(NewTask::new("mail").unwrap()));
        match &*store.apply(vec![submit]).await.unwrap() {
            [Outcome::Submitted(submitted)] => submitted.id(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_has_waited_for_the_lock_writes_before_who_comes_when_it_is_free() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        let (patient, hasty) = (open(&path).await, open(&path).await);
        patient.core().look().unwrap();
        hasty.core().look().unwrap();
        let blocker = Connection::open(&path).unwrap();
        blocker.execute_batch("BEGIN IMMEDIATE").unwrap();

        let patient = tokio::spawn(async move { submit(&patient).await });
        let turnstile = File::open(directory.path().join("onward.db-sessions")).unwrap();
        let closes = async {
            while turnstile.try_lock().is_ok() {
                turnstile.unlock().unwrap();
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), closes).await.unwrap();
        blocker.execute_batch("ROLLBACK").unwrap();
        let second = submit(&hasty).await;
        assert!(patient.await.unwrap() < second);
    }
}
