//! The hand-over of a group commit: callers queue requests, and each request is committed by a
//! caller that is committing or by the thread, which waits until it is needed.
//!
//! This file uses nothing of the store, so that the models in `models/` can run every interleaving
//! of it.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::sync::{Condvar, Mutex, MutexGuard};

/// The queue between callers and the thread.
#[derive(Debug)]
pub(super) struct HandOver<R> {
    /// The requests that wait. Its lock is held only to push and to take.
    queue: Mutex<Queue<R>>,
    /// Wakes the thread.
    arrived: Condvar,
}

/// The requests that wait for a commit.
#[derive(Debug)]
struct Queue<R> {
    /// The requests in the order of their arrival.
    requests: VecDeque<R>,
    /// True if the store is being dropped: the thread ends once the queue is empty.
    closed: bool,
    /// The number of callers and threads that are committing. Each checks the queue again before it
    /// stops.
    committing: usize,
    /// True if the thread waits, and must be woken.
    thread_waits: bool,
}

/// The error of a request to a store that is being dropped.
#[derive(Debug)]
pub(super) struct Closed;

/// A guard of a caller or thread that is committing. Its drop wakes the thread if requests are
/// left.
struct Committing<'a, R>(&'a HandOver<R>);

impl<R> Drop for Committing<'_, R> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.committing -= 1;
        if !queue.requests.is_empty() {
            self.0.wake(queue);
        }
    }
}

impl<R> HandOver<R> {
    pub(super) fn new() -> Self {
        let queue = Queue { requests: VecDeque::new(), closed: false, committing: 0, thread_waits: false };
        Self { queue: Mutex::new(queue), arrived: Condvar::new() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<R>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a request. Returns true if it will be committed without the caller: by the thread,
    /// which is woken if `wake` is true, or by a caller that is committing.
    pub(super) fn push(&self, request: R, wake: bool) -> Result<bool, Closed> {
        let mut queue = self.queue();
        if queue.closed {
            return Err(Closed);
        }
        queue.requests.push_back(request);
        let is_seen_to = wake || queue.committing > 0;
        if wake {
            self.wake(queue);
        }
        Ok(is_seen_to)
    }

    /// Wakes the thread if it waits, for a request whose caller is gone.
    pub(super) fn wake_thread(&self) {
        self.wake(self.queue());
    }

    /// Wakes the thread if it waits. Releases the queue first, or the thread would wake only to
    /// wait for its lock.
    fn wake(&self, queue: MutexGuard<'_, Queue<R>>) {
        let waits = queue.thread_waits;
        drop(queue);
        if waits {
            self.arrived.notify_one();
        }
    }

    /// Commits at most `batches` batches in the caller's thread, while the queue `is_small` and
    /// `commit` returns true. Does nothing if another caller or the thread is committing, because
    /// that one checks the queue again. The thread commits the rest.
    pub(super) fn commit_if_free(
        &self,
        batches: usize,
        is_small: impl Fn(&VecDeque<R>) -> bool,
        commit: impl Fn() -> bool,
    ) {
        let mut queue = self.queue();
        if queue.committing > 0 {
            return;
        }
        let _committing = self.begin(&mut queue);
        drop(queue);
        for _ in 0..batches {
            // The queue is released before the commit, which takes from it.
            let goes_on = is_small(&self.queue().requests);
            if !goes_on || !commit() {
                return;
            }
        }
    }

    /// Registers a committing caller or thread, which checks the queue again before it stops.
    fn begin(&self, queue: &mut Queue<R>) -> Committing<'_, R> {
        queue.committing += 1;
        Committing(self)
    }

    /// Takes the requests that share the next commit, at most `most`.
    pub(super) fn take(&self, most: usize) -> Vec<R> {
        let mut queue = self.queue();
        let take = queue.requests.len().min(most);
        queue.requests.drain(..take).collect()
    }

    /// Runs the thread: commits what arrives until the store is closed and the queue is empty.
    pub(super) fn run(&self, commit: impl Fn()) {
        while let Some(_committing) = self.wait_for_job() {
            commit();
        }
    }

    /// Waits for requests. Returns `None` when the store is being dropped and the queue is empty.
    fn wait_for_job(&self) -> Option<Committing<'_, R>> {
        let mut queue = self.queue();
        while queue.requests.is_empty() && !queue.closed {
            queue.thread_waits = true;
            queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.thread_waits = false;
        }
        (!queue.requests.is_empty()).then(|| self.begin(&mut queue))
    }

    /// Refuses further requests, and ends the thread once the queue is empty.
    pub(super) fn close(&self) {
        self.queue().closed = true;
        self.arrived.notify_one();
    }
}
