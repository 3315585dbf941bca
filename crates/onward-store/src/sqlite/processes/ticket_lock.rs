//! Processes that write to one file take turns, in the order of their arrival.
//!
//! SQLite gives its write lock to the first process that tries. A process that commits repeatedly
//! tries again at once, while a waiting process sleeps between its attempts and seldom finds the
//! lock free. With a thousand processes, the attempts also take processor time from the one that
//! works. So a process passes a *ticket lock* first, and holds it until it has SQLite's lock. The
//! ticket lock is a lock of the kernel, which queues waiters in order, wakes one at a time, and
//! drops a process that ends.
//!
//! The ticket lock only provides fairness; SQLite's lock provides exclusion. A process may be
//! stopped while it holds the ticket lock. The others bypass it after a time without a commit in
//! which no process holds the write lock.

use std::cell::Cell;
use std::fs::{File, TryLockError};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::api::error::Result;
use crate::sqlite::processes::lock_wait::MAX_POLLS;
use crate::sqlite::processes::write_lock::{Progress, WriteLock};

/// The time between two checks for progress of other processes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The number of checks in a row without a commit after which the holder of the write lock is
/// looked up. It doubles each time.
const POLLS_BEFORE_ASKING: u32 = 2;

/// The number of further writes that bypass a ticket lock whose holder has stopped.
const MAX_PASSES: u32 = 100;

/// The queue of processes for the write lock.
#[derive(Debug)]
pub(in crate::sqlite) struct TicketLock {
    /// The file that is locked, shared with the waiting thread.
    lock_file: Arc<LockFile>,
    /// The write lock, whose progress shows if a holder has stopped.
    lock: WriteLock,
    /// The number of further writes for which this process takes no ticket.
    passes: Cell<u32>,
}

/// The locked file and the thread that waits for it. Each open store has its own descriptor.
#[derive(Debug)]
struct LockFile {
    /// The directory of lock files, which serves as the lock.
    file: File,
    /// The state of the thread in the kernel's queue.
    queue: Mutex<KernelQueue>,
    /// Notified when the thread has left the kernel's queue.
    changed: Condvar,
}

/// The thread that waits in the kernel's queue.
#[derive(Debug, Default)]
struct KernelQueue {
    /// True if the thread is in the queue of the lock.
    is_queued: bool,
    /// True if a caller wants the lock when the thread gets it.
    is_wanted: bool,
    /// The result of the wait; `false` if the file system has no such locks.
    ended: Option<bool>,
}

/// A held ticket lock. Dropping it lets the next process in.
#[derive(Debug)]
pub(in crate::sqlite) struct Ticket<'t>(&'t File);

/// The decision after a check of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Keep waiting for the holder.
    Wait,
    /// Use SQLite's lock without the ticket, because the holder of the ticket has stopped.
    PassBy,
    /// Give up: the holder of the write lock makes no progress.
    GiveUp,
}

/// The time for which other processes have made no progress.
#[derive(Debug)]
struct StallWatch {
    /// The progress at the last poll.
    seen: Progress,
    /// The number of checks without progress.
    polls: u32,
    /// The number of checks after which the holder of the write lock is looked up.
    ask_at: u32,
    /// The process that held the write lock at the last lookup.
    holder: Option<u32>,
}

impl TicketLock {
    /// Creates a ticket lock over an open directory.
    pub(in crate::sqlite) fn new(file: File, lock: WriteLock) -> Self {
        let lock_file = LockFile { file, queue: Mutex::default(), changed: Condvar::new() };
        Self { lock_file: Arc::new(lock_file), lock, passes: Cell::new(0) }
    }

    /// Returns the write lock that the ticket lock guards.
    pub(in crate::sqlite) fn lock(&self) -> &WriteLock {
        &self.lock
    }

    /// Waits for this process's turn, as long as other processes make progress. Returns `None` if
    /// the write lock must be tried without a ticket.
    ///
    /// # Errors
    /// If another process has held the write lock for 30 s and no process has committed.
    pub(in crate::sqlite) fn acquire(&self) -> Result<Option<Ticket<'_>>> {
        if let Some(left) = self.passes.get().checked_sub(1) {
            self.passes.set(left);
            return Ok(None);
        }
        let is_in = if self.lock_file.is_queued() { self.wait()? } else { self.try_acquire()? };
        if !is_in {
            self.passes.set(MAX_PASSES);
        }
        Ok(is_in.then_some(Ticket(&self.lock_file.file)))
    }

    /// Takes the lock if it is free, and queues up otherwise. Returns true if this process has it.
    fn try_acquire(&self) -> Result<bool> {
        match self.lock_file.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) if Arc::clone(&self.lock_file).queue_up() => self.wait(),
            // Some file systems have no such locks.
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Ok(false),
        }
    }

    /// Waits for the queued thread. Returns true if this process has the lock.
    fn wait(&self) -> Result<bool> {
        let mut stall = StallWatch::new(self.lock.progress());
        let mut queue = self.lock_file.queue();
        loop {
            let waited = self.lock_file.changed.wait_timeout_while(queue, POLL_INTERVAL, |queue| queue.ended.is_none());
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            if let Some(is_in) = queue.ended.take() {
                return Ok(is_in);
            }
            let holder = || self.lock.holder().map(|holder| holder.process);
            let verdict = stall.poll(self.lock.progress(), holder);
            if verdict != Verdict::Wait {
                queue.is_wanted = false;
            }
            match verdict {
                Verdict::Wait => {}
                Verdict::PassBy => return Ok(false),
                Verdict::GiveUp => return Err(self.lock.busy()),
            }
        }
    }
}

impl LockFile {
    /// Locks the state of the waiting thread.
    fn queue(&self) -> MutexGuard<'_, KernelQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the thread is still in the kernel's queue. Its lock is then wanted again.
    fn is_queued(&self) -> bool {
        let mut queue = self.queue();
        queue.is_wanted = queue.is_queued;
        queue.is_queued
    }

    /// Starts a thread that waits in the kernel's queue, because nothing else can end such a wait.
    /// Returns true if it was started.
    fn queue_up(self: Arc<Self>) -> bool {
        *self.queue() = KernelQueue { is_queued: true, is_wanted: true, ended: None };
        let lock_file = Arc::clone(&self);
        let thread =
            std::thread::Builder::new().name("onward-ticket".into()).spawn(move || lock_file.wait_in_kernel_queue());
        self.queue().is_queued &= thread.is_ok();
        thread.is_ok()
    }

    /// Waits in the kernel's queue, and releases the lock at once if no caller wants it any more.
    fn wait_in_kernel_queue(&self) {
        let is_in = loop {
            match self.file.lock() {
                Err(failure) if failure.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome.is_ok(),
            }
        };
        let mut queue = self.queue();
        queue.is_queued = false;
        if queue.is_wanted {
            queue.ended = Some(is_in);
            self.changed.notify_one();
        } else if is_in {
            let _ = self.file.unlock();
        }
    }
}

impl StallWatch {
    /// Begins to watch for progress.
    fn new(seen: Progress) -> Self {
        Self { seen, polls: 0, ask_at: POLLS_BEFORE_ASKING, holder: None }
    }

    /// Decides by the current progress. It rarely looks up the holder of the lock, because the
    /// system then lists all locks.
    fn poll(&mut self, now: Progress, holder: impl FnOnce() -> Option<u32>) -> Verdict {
        if now != self.seen {
            *self = Self::new(now);
            return Verdict::Wait;
        }
        self.polls += 1;
        if self.polls < self.ask_at.min(MAX_POLLS) {
            return Verdict::Wait;
        }
        let Some(process) = holder() else { return Verdict::PassBy };
        if self.holder.is_some_and(|seen| seen != process) {
            *self = Self { holder: Some(process), ..Self::new(now) };
            return Verdict::Wait;
        }
        self.holder = Some(process);
        self.ask_at *= 2;
        if self.polls < MAX_POLLS { Verdict::Wait } else { Verdict::GiveUp }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        // A file that cannot be unlocked is unlocked when it is closed.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    #[cfg(target_os = "linux")]
    use std::sync::mpsc;

    use rusqlite::Connection;

    use super::*;
    use crate::api::outcome::Outcome;
    use crate::api::store::Store as _;
    use crate::api::task::{NewTask, TaskId};
    use crate::api::write::Write;
    use crate::sqlite::store::sqlite_store::SqliteStore;

    /// Returns ticket locks of processes on one directory.
    fn ticket_locks<const N: usize>() -> (tempfile::TempDir, [TicketLock; N]) {
        let directory = tempfile::tempdir().unwrap();
        let lock = WriteLock::of(&directory.path().join("onward.db"));
        let ticket_locks = [(); N].map(|()| TicketLock::new(File::open(directory.path()).unwrap(), lock.clone()));
        (directory, ticket_locks)
    }

    #[test]
    fn it_opens_when_the_one_within_has_gone_on() {
        let (_directory, [one, other]) = ticket_locks();
        drop(one.acquire().unwrap());
        assert!(other.acquire().unwrap().is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn those_who_wait_enter_in_the_order_in_which_they_came() {
        let (directory, [first]) = ticket_locks();
        let (entered, order) = mpsc::channel();
        std::thread::scope(|scope| {
            let within = first.acquire().unwrap();
            for number in 0..20 {
                let (path, entered) = (directory.path(), entered.clone());
                scope.spawn(move || {
                    let ticket_lock =
                        TicketLock::new(File::open(path).unwrap(), WriteLock::of(&path.join("onward.db")));
                    let turn = ticket_lock.acquire().unwrap();
                    entered.send((number, turn.is_some())).unwrap();
                });
                await_waiting(path, number + 1);
            }
            drop(within);
        });
        drop(entered);
        assert_eq!(order.iter().collect::<Vec<_>>(), (0..20).map(|number| (number, true)).collect::<Vec<_>>());
    }

    #[test]
    fn one_who_passed_by_a_stopped_one_has_its_place_in_the_queue_still() {
        let (_directory, [stopped, other]) = ticket_locks();
        let within = stopped.acquire().unwrap();
        assert!(other.acquire().unwrap().is_none());
        drop(within);
        (0..MAX_PASSES).for_each(|_| assert!(other.acquire().unwrap().is_none()));
        assert!(other.acquire().unwrap().is_some());
    }

    #[cfg(target_os = "linux")]
    /// Waits until `count` threads wait for the lock of this directory.
    fn await_waiting(directory: &Path, count: usize) {
        use std::os::unix::fs::MetadataExt as _;
        let inode = format!(":{} ", std::fs::metadata(directory).unwrap().ino());
        let waits = |line: &&str| line.contains("-> FLOCK") && line.contains(&inode);
        while std::fs::read_to_string("/proc/locks").unwrap().lines().filter(waits).count() < count {
            std::thread::yield_now();
        }
    }

    fn verdicts(holder: Option<u32>, polls: u32) -> Vec<Verdict> {
        let lock = WriteLock::of(Path::new("/nowhere/onward.db"));
        let mut stall = StallWatch::new(lock.progress());
        (0..polls).map(|_| stall.poll(lock.progress(), || holder)).collect()
    }

    #[test]
    fn one_that_was_stopped_within_is_passed_by_when_the_write_lock_is_free() {
        assert_eq!(verdicts(None, 2), [Verdict::Wait, Verdict::PassBy]);
    }

    #[test]
    fn a_process_that_holds_the_write_lock_is_waited_for_half_a_minute() {
        let verdicts = verdicts(Some(7), MAX_POLLS);
        assert!(verdicts[..29].iter().all(|verdict| *verdict == Verdict::Wait), "{verdicts:?}");
        assert_eq!(verdicts.last(), Some(&Verdict::GiveUp));
    }

    #[test]
    fn processes_that_commit_are_waited_for_without_an_end() {
        let directory = tempfile::tempdir().unwrap();
        let lock = WriteLock::of(&directory.path().join("onward.db"));
        let mut stall = StallWatch::new(lock.progress());
        for commits in 0..100 {
            std::fs::write(directory.path().join("onward.db-wal"), vec![0; commits]).unwrap();
            assert_eq!(stall.poll(lock.progress(), || Some(7)), Verdict::Wait);
        }
    }

    #[test]
    fn processes_that_take_turns_without_a_commit_are_waited_for() {
        let lock = WriteLock::of(Path::new("/nowhere/onward.db"));
        let mut stall = StallWatch::new(lock.progress());
        for process in 0..100 {
            assert_eq!(stall.poll(lock.progress(), || Some(process)), Verdict::Wait);
        }
    }

    /// Opens a store on a file that other stores have open.
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
        patient.committer().update_peers(true).unwrap();
        hasty.committer().update_peers(true).unwrap();
        let blocker = Connection::open(&path).unwrap();
        blocker.execute_batch("BEGIN IMMEDIATE").unwrap();

        let patient = tokio::spawn(async move { submit(&patient).await });
        let ticket_lock = File::open(directory.path().join("onward.db-sessions")).unwrap();
        let closes = async {
            while ticket_lock.try_lock().is_ok() {
                ticket_lock.unlock().unwrap();
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), closes).await.unwrap();
        blocker.execute_batch("ROLLBACK").unwrap();
        let second = submit(&hasty).await;
        assert!(patient.await.unwrap() < second);
    }
}
