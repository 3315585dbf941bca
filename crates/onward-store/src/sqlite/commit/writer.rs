//! Group commit: callers put their writes into a queue, and the next commit takes all of them.
//!
//! With durability level `full` a dedicated thread commits, so that a sync never blocks an async
//! runtime. With the other levels a commit takes microseconds, less than the hand-over to a thread.
//! So a caller that finds the writer free commits at once, together with the requests of other
//! callers. After a few batches it stops, and the thread commits the rest of the queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;

use tokio::sync::{Semaphore, oneshot};

use crate::api::error::{Error, Result};
use crate::api::outcome::Outcome;
use crate::api::write::Write;
use crate::bounds;
use crate::sqlite::commit::committer::{CommitRequest, Committer};
use crate::sqlite::commit::hand_over::HandOver;

/// The most writes that a caller commits itself. More take longer than a hand-over, which sleeps
/// and wakes two threads, and would block the caller's thread.
const ON_THE_SPOT: usize = 64;

/// The number of small batches that a caller commits one after the other. Writes that arrive in the
/// meantime need not wake the thread, which would take a processor from the callers.
const INLINE_BATCHES: usize = 4;

/// The number of commits in a row with one request each after which a caller counts as alone. From
/// then on only one in `ALONE` of its commits waits for other callers.
const ALONE: u32 = 8;

/// The group commit of a store, with its thread.
#[derive(Debug)]
pub(in crate::sqlite) struct Writer {
    /// The state that callers and the thread share.
    shared: Arc<GroupCommit>,
    /// The committing thread; `None` after it was joined.
    thread: Option<JoinHandle<()>>,
    /// True if commits sync. Then only the thread commits.
    syncs: bool,
    /// Blocks callers when [`bounds::PENDING`] requests are pending.
    places: Semaphore,
}

/// The shared state of a group commit.
#[derive(Debug)]
struct GroupCommit {
    /// The committer. A thread may commit while it holds this lock.
    committer: Arc<Mutex<Committer>>,
    /// The requests that wait.
    requests: HandOver<CommitRequest>,
    /// The number of commits in a row that had one request.
    unshared: AtomicU32,
}

impl Writer {
    /// Starts the thread.
    pub(in crate::sqlite) fn start(committer: Arc<Mutex<Committer>>, syncs: bool) -> Result<Self> {
        let shared = Arc::new(GroupCommit { committer, requests: HandOver::new(), unshared: AtomicU32::new(0) });
        let run = {
            let shared = Arc::clone(&shared);
            move || shared.run()
        };
        let thread = std::thread::Builder::new()
            .name("onward-writer".into())
            .spawn(run)
            .map_err(|error| Error::io("no thread could be started for the store").caused_by(error))?;
        Ok(Self { shared, thread: Some(thread), syncs, places: Semaphore::new(bounds::PENDING) })
    }

    /// Locks the committer, after any commit in progress.
    pub(in crate::sqlite) fn committer(&self) -> MutexGuard<'_, Committer> {
        self.shared.committer()
    }

    /// Commits writes together with those of other callers.
    pub(in crate::sqlite) async fn apply(&self, writes: Vec<Write>) -> Result<Vec<Outcome>> {
        self.commit(writes, false).await
    }

    /// Writes the pending tags to the tables that find tasks by tags.
    pub(in crate::sqlite) async fn write_tags(&self) -> Result<()> {
        self.commit(Vec::new(), true).await.map(drop)
    }

    /// Commits writes together with those of other callers, and returns their outcomes.
    async fn commit(&self, writes: Vec<Write>, tags: bool) -> Result<Vec<Outcome>> {
        let _place = self.places.acquire().await.map_err(|_| Error::closed())?;
        let (reply, outcome) = oneshot::channel();
        let request = CommitRequest { writes, tags, reply };
        let is_seen_to = self.shared.requests.push(request, self.syncs).map_err(|_| Error::closed())?;
        if !is_seen_to {
            let abandoned = Abandoned { shared: &self.shared, armed: true };
            // Yielding lets other callers join this commit. If the future is dropped at that await,
            // `abandoned` wakes the thread.
            if self.shared.may_be_shared() {
                give_way().await;
            }
            abandoned.disarm();
            // Another caller may have committed this request during the yield.
            if outcome.is_empty() && !outcome.is_terminated() {
                self.shared.commit_if_free();
            }
        }
        outcome.await.map_err(|_| Error::closed())?
    }
}

/// Wakes the thread if a caller's future is dropped between queueing its writes and committing
/// them. They are committed anyway.
struct Abandoned<'a> {
    /// The group commit to wake.
    shared: &'a GroupCommit,
    /// True while the caller has not committed yet.
    armed: bool,
}

impl Abandoned<'_> {
    /// Ends the guard's duty, because the caller commits now.
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.shared.requests.wake_thread();
        }
    }
}

/// Yields once, so that other ready tasks of the runtime can queue their writes and share the
/// commit. Alone on the runtime, a caller continues at once.
async fn give_way() {
    let mut gave_way = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut gave_way, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.requests.close();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic. If it did anyway, no caller is left to notify.
            let _ = thread.join();
        }
    }
}

impl GroupCommit {
    /// Locks the committer, also after a panic in a commit.
    fn committer(&self) -> MutexGuard<'_, Committer> {
        self.committer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if another caller is likely to join the next commit during a yield. A yield
    /// makes a multi-threaded runtime wake another thread, which costs a lone caller a fifth of its
    /// time.
    fn may_be_shared(&self) -> bool {
        let unshared = self.unshared.load(Ordering::Relaxed);
        unshared < ALONE || unshared.is_multiple_of(ALONE)
    }

    /// Commits a few small batches. Does nothing if another caller or the thread is committing,
    /// because that one checks the queue again. The thread commits the rest.
    fn commit_if_free(&self) {
        self.requests.commit_if_free(INLINE_BATCHES, is_small, || {
            // The lock is tried and not awaited: a caller's thread must not block.
            let committer = match self.committer.try_lock() {
                Ok(committer) => committer,
                Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) => return false,
            };
            self.commit_batch(committer);
            true
        });
    }

    /// Commits as many queued requests as fit into one commit.
    fn commit_batch(&self, mut committer: MutexGuard<'_, Committer>) {
        let requests = self.requests.take(bounds::COMMIT);
        if !requests.is_empty() {
            let unshared = if requests.len() == 1 { self.unshared.load(Ordering::Relaxed).wrapping_add(1) } else { 0 };
            self.unshared.store(unshared, Ordering::Relaxed);
            let replies = committer.commit(requests);
            // Released before the replies are sent, so that the next commit can begin.
            drop(committer);
            replies.send();
        }
    }

    /// Runs the thread: commits what arrives until the store is closed and the queue is empty.
    fn run(&self) {
        self.requests.run(|| self.commit_batch(self.committer()));
    }
}

/// Returns true if the queue is not empty and small enough for a caller.
fn is_small(requests: &VecDeque<CommitRequest>) -> bool {
    let writes: usize = requests.iter().take(ON_THE_SPOT).map(|request| request.writes.len()).sum();
    !requests.is_empty() && writes <= ON_THE_SPOT
}
