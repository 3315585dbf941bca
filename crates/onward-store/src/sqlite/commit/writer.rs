//! Group commit: callers leave their writes in a queue, and whoever commits takes them all.
//!
//! In class `full` a thread of its own commits, so that a sync never blocks an async runtime. In
//! the other classes a commit takes microseconds and a hand-over between threads would cost more
//! than the commit, so a caller that finds the writer free commits on the spot, takes along what
//! others have left meanwhile, and goes on for a few batches; what is left in the queue after that
//! goes to the thread.

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

/// The most writes that a caller commits itself: more take longer than a hand-over (that sleeps and
/// wakes two threads), and would hold up the caller's thread.
const ON_THE_SPOT: usize = 64;

/// How many batches of so few writes a caller commits one after the other. What comes while it is
/// at one need not wake the thread then, which would take a processor from the callers.
const BATCHES_ON_THE_SPOT: usize = 4;

/// After how many commits in a row that nobody shared a caller counts as alone. Of such a one's
/// commits only every so-many-th waits for others.
const ALONE: u32 = 8;

#[derive(Debug)]
pub(in crate::sqlite) struct Writer {
    shared: Arc<GroupCommit>,
    thread: Option<JoinHandle<()>>,
    /// Whether commits sync, and are left to the thread.
    syncs: bool,
    /// Holds callers back when too many wait.
    places: Semaphore,
}

#[derive(Debug)]
struct GroupCommit {
    committer: Arc<Mutex<Committer>>,
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// How many commits in a row had the writes of one caller alone.
    unshared: AtomicU32,
}

#[derive(Debug, Default)]
struct Queue {
    requests: VecDeque<CommitRequest>,
    closed: bool,
    /// How many are at commits, and look into the queue again before they go.
    committing: usize,
    /// Whether the thread waits for a job, and must be woken.
    thread_waits: bool,
}

impl Writer {
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

    pub(in crate::sqlite) fn committer(&self) -> MutexGuard<'_, Committer> {
        self.shared.committer()
    }

    /// Commits writes together with those of other callers.
    pub(in crate::sqlite) async fn apply(&self, writes: Vec<Write>) -> Result<Vec<Outcome>> {
        self.commit(writes, false).await
    }

    /// Brings the tables that find tasks by tags up to date.
    pub(in crate::sqlite) async fn write_tags(&self) -> Result<()> {
        self.commit(Vec::new(), true).await.map(drop)
    }

    async fn commit(&self, writes: Vec<Write>, tags: bool) -> Result<Vec<Outcome>> {
        let _place = self.places.acquire().await.map_err(|_| Error::closed())?;
        let (reply, outcome) = oneshot::channel();
        let is_seen_to = self.shared.push(CommitRequest { writes, tags, reply }, self.syncs)?;
        if !is_seen_to {
            let abandoned = Abandoned { shared: &self.shared, armed: true };
            if self.shared.may_be_shared() {
                give_way().await;
            }
            abandoned.disarm();
            if outcome.is_empty() && !outcome.is_terminated() {
                self.shared.commit_if_free();
            }
        }
        outcome.await.map_err(|_| Error::closed())?
    }
}

/// Wakes the thread if the caller goes away between leaving its writes and committing them, so that
/// they do not lie there.
struct Abandoned<'a> {
    shared: &'a GroupCommit,
    armed: bool,
}

impl Abandoned<'_> {
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

/// Whoever is at commits: at the end the thread is told of what is left.
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

/// Lets every other task of the runtime that is ready run once, so that callers who are about to
/// write do so before the commit, and share it. Alone on the runtime, a caller goes on at once.
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
            // The thread does not panic; if it did all the same, there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

impl GroupCommit {
    fn committer(&self) -> MutexGuard<'_, Committer> {
        self.committer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a job; answers whether somebody sees to it: the thread, which is woken if asked to,
    /// or who is at a commit.
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

    fn wake(&self, queue: MutexGuard<'_, Queue>) {
        let waits = queue.thread_waits;
        drop(queue);
        if waits {
            self.arrived.notify_one();
        }
    }

    /// Whether somebody is likely to join the next commit who is given the time. To give way has a
    /// multi-threaded runtime wake another thread, which takes a lone caller a fifth of its time.
    fn may_be_shared(&self) -> bool {
        let unshared = self.unshared.load(Ordering::Relaxed);
        unshared < ALONE || unshared.is_multiple_of(ALONE)
    }

    /// Commits a few small batches unless somebody else is at it: that one looks into the queue
    /// again. What is left goes to the thread.
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

    fn begin(&self, queue: &mut Queue) -> Committing<'_> {
        queue.committing += 1;
        Committing(self)
    }

    /// Whether what waits is something, and little enough for a caller.
    fn is_small(&self) -> bool {
        let queue = self.queue();
        let writes: usize = queue.requests.iter().take(ON_THE_SPOT).map(|request| request.writes.len()).sum();
        !queue.requests.is_empty() && writes <= ON_THE_SPOT
    }

    /// Commits what waits, as much as fits into one commit.
    fn commit_batch(&self, mut committer: MutexGuard<'_, Committer>) {
        let requests = self.take_batch();
        if !requests.is_empty() {
            let unshared = if requests.len() == 1 { self.unshared.load(Ordering::Relaxed).wrapping_add(1) } else { 0 };
            self.unshared.store(unshared, Ordering::Relaxed);
            let answers = committer.commit(requests);
            drop(committer);
            answers.send();
        }
    }

    fn take_batch(&self) -> Vec<CommitRequest> {
        let mut queue = self.queue();
        let take = queue.requests.len().min(bounds::COMMIT);
        queue.requests.drain(..take).collect()
    }

    /// The thread: commits whatever arrives until the store is closed and the queue is empty.
    fn run(&self) {
        while let Some(_committing) = self.wait_for_job() {
            self.commit_batch(self.committer());
        }
    }

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
