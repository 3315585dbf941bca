//! Group commit: callers leave their writes in a queue, and the committing thread takes them all.
//!
//! With durability level `full` a dedicated thread commits, so that a sync never blocks an async
//! runtime. With the other levels a commit takes microseconds, and a hand-over between threads
//! would cost more than the commit. So a caller that finds the writer free commits at once,
//! together with what other callers have left. It continues for a few batches; then the thread
//! commits what is left in the queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;

use tokio::sync::{Semaphore, oneshot};

use crate::api::error::{Error, Result};
use crate::api::outcome::Outcome;
use crate::api::write::Write;
use crate::bounds;
use crate::sqlite::commit::committer::{CommitRequest, Committer};

/// The most writes that a caller commits itself. More take longer than a hand-over (which sleeps
/// and wakes two threads), and would block the caller's thread.
const ON_THE_SPOT: usize = 64;

/// The number of batches of so few writes that a caller commits one after the other. Writes that
/// arrive in the meantime need not wake the thread, which would take a processor from the callers.
const BATCHES_ON_THE_SPOT: usize = 4;

/// The number of unshared commits in a row after which a caller counts as alone. Then only every
/// `ALONE`-th of its commits waits for other callers.
const ALONE: u32 = 8;

/// The group commit of a store, and the thread that it ends with.
#[derive(Debug)]
pub(in crate::sqlite) struct Writer {
    /// The state that callers and the thread share.
    shared: Arc<GroupCommit>,
    /// The committing thread; `None` after it was joined.
    thread: Option<JoinHandle<()>>,
    /// True if commits sync, and are left to the thread.
    syncs: bool,
    /// Blocks callers when too many wait.
    places: Semaphore,
}

/// The shared state of a group commit.
#[derive(Debug)]
struct GroupCommit {
    /// The committer. Its lock is the right to commit.
    committer: Arc<Mutex<Committer>>,
    /// The requests that wait. Its lock is held only to push and to take.
    queue: Mutex<Queue>,
    /// Wakes the thread.
    arrived: Condvar,
    /// The number of commits in a row that had the writes of one caller alone.
    unshared: AtomicU32,
}

/// The requests that wait for a commit.
#[derive(Debug, Default)]
struct Queue {
    /// The requests in the order of their arrival.
    requests: VecDeque<CommitRequest>,
    /// True if the store is being dropped: the thread ends once the queue is empty.
    closed: bool,
    /// The number of callers and threads that are committing and check the queue again before they
    /// stop.
    committing: usize,
    /// True if the thread waits for a job, and must be woken.
    thread_waits: bool,
}

impl Writer {
    /// Starts the thread.
    pub(in crate::sqlite) fn start(committer: Arc<Mutex<Committer>>, syncs: bool) -> Result<Self> {
        let shared = Arc::new(GroupCommit {
            committer,
            queue: Mutex::default(),
            arrived: Condvar::new(),
            unshared: AtomicU32::new(0),
        });
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

    /// Locks the committer, and waits for a commit in progress.
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
        let is_seen_to = self.shared.push(CommitRequest { writes, tags, reply }, self.syncs)?;
        if !is_seen_to {
            let abandoned = Abandoned { shared: &self.shared, armed: true };
            // Yielding lets other callers join this commit. The future may be dropped at that
            // await, and `abandoned` then wakes the thread.
            if self.shared.may_be_shared() {
                give_way().await;
            }
            abandoned.disarm();
            // Another caller may have committed this request while this one yielded.
            if outcome.is_empty() && !outcome.is_terminated() {
                self.shared.commit_if_free();
            }
        }
        outcome.await.map_err(|_| Error::closed())?
    }
}

/// Wakes the thread if the caller is dropped between leaving its writes and committing them, so
/// that they are committed anyway.
struct Abandoned<'a> {
    /// The group commit to wake.
    shared: &'a GroupCommit,
    /// True while the caller has not committed yet.
    armed: bool,
}

impl Abandoned<'_> {
    /// Ends the guard's duty.
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.shared.wake(self.shared.queue());
        }
    }
}

/// Marks a caller or thread that is committing. When it stops, it wakes the thread for what is
/// left.
struct Committing<'a>(&'a GroupCommit);

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.committing -= 1;
        if !queue.requests.is_empty() {
            self.0.wake(queue);
        }
    }
}

/// Lets every other ready task of the runtime run once, so that callers who are about to write do
/// so before the commit, and share it. Alone on the runtime, a caller continues at once.
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
        self.shared.queue().closed = true;
        self.shared.arrived.notify_one();
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

    /// Locks the queue.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a request. Returns true if it will be committed without the caller: by the thread,
    /// which is woken if `wake`, or by a caller that is committing.
    fn push(&self, request: CommitRequest, wake: bool) -> Result<bool> {
        let mut queue = self.queue();
        if queue.closed {
            return Err(Error::closed());
        }
        queue.requests.push_back(request);
        let is_seen_to = wake || queue.committing > 0;
        if wake {
            self.wake(queue);
        }
        Ok(is_seen_to)
    }

    /// Wakes the thread if it waits. The lock is released first, or the thread would wake only to
    /// wait for it.
    fn wake(&self, queue: MutexGuard<'_, Queue>) {
        let waits = queue.thread_waits;
        drop(queue);
        if waits {
            self.arrived.notify_one();
        }
    }

    /// Returns true if another caller is likely to join the next commit if it is given the time.
    /// Yielding makes a multi-threaded runtime wake another thread, which takes a lone caller a
    /// fifth of its time.
    fn may_be_shared(&self) -> bool {
        let unshared = self.unshared.load(Ordering::Relaxed);
        unshared < ALONE || unshared.is_multiple_of(ALONE)
    }

    /// Commits a few small batches, unless another caller or the thread is committing, which then
    /// checks the queue again. The thread commits the rest.
    fn commit_if_free(&self) {
        let mut queue = self.queue();
        if queue.committing > 0 {
            return;
        }
        let _committing = self.begin(&mut queue);
        drop(queue);
        for _ in 0..BATCHES_ON_THE_SPOT {
            if !self.is_small() {
                return;
            }
            let committer = match self.committer.try_lock() {
                Ok(committer) => committer,
                Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) => return,
            };
            self.commit_batch(committer);
        }
    }

    /// Registers a committer, which looks into the queue again before it stops.
    fn begin(&self, queue: &mut Queue) -> Committing<'_> {
        queue.committing += 1;
        Committing(self)
    }

    /// Returns true if the queue is not empty and small enough for a caller.
    fn is_small(&self) -> bool {
        let queue = self.queue();
        let writes: usize = queue.requests.iter().take(ON_THE_SPOT).map(|request| request.writes.len()).sum();
        !queue.requests.is_empty() && writes <= ON_THE_SPOT
    }

    /// Commits the queued requests, as many as fit into one commit.
    fn commit_batch(&self, mut committer: MutexGuard<'_, Committer>) {
        let requests = self.take_batch();
        if !requests.is_empty() {
            let unshared = if requests.len() == 1 { self.unshared.load(Ordering::Relaxed).wrapping_add(1) } else { 0 };
            self.unshared.store(unshared, Ordering::Relaxed);
            let answers = committer.commit(requests);
            // Released before the replies are sent, so that the next commit need not wait for that.
            drop(committer);
            answers.send();
        }
    }

    /// Takes the requests that share the next commit, at most [`bounds::COMMIT`].
    fn take_batch(&self) -> Vec<CommitRequest> {
        let mut queue = self.queue();
        let take = queue.requests.len().min(bounds::COMMIT);
        queue.requests.drain(..take).collect()
    }

    /// Runs the thread: commits what arrives until the store is closed and the queue is empty.
    fn run(&self) {
        while let Some(_committing) = self.wait_for_job() {
            self.commit_batch(self.committer());
        }
    }

    /// Waits for requests. Returns `None` when the store is being dropped and the queue is empty.
    fn wait_for_job(&self) -> Option<Committing<'_>> {
        let mut queue = self.queue();
        while queue.requests.is_empty() && !queue.closed {
            queue.thread_waits = true;
            queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.thread_waits = false;
        }
        (!queue.requests.is_empty()).then(|| self.begin(&mut queue))
    }
}
