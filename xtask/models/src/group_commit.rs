use std::sync::Arc;

use hand_over::HandOver;
use loom::sync::{Condvar, Mutex};
use loom::thread;

/// The group commit of a store: the hand-over, a committer, and the requests that it committed.
struct Store {
    requests: HandOver<u32>,
    committer: Mutex<()>,
    committed: Mutex<Vec<u32>>,
    is_committed: Condvar,
}

impl Store {
    fn new() -> Arc<Self> {
        let (committer, committed, is_committed) = (Mutex::new(()), Mutex::new(Vec::new()), Condvar::new());
        Arc::new(Self { requests: HandOver::new(), committer, committed, is_committed })
    }

    /// Starts the committing thread.
    fn start(self: &Arc<Self>) -> thread::JoinHandle<()> {
        let store = Arc::clone(self);
        thread::spawn(move || {
            store.requests.run(|| {
                let _committer = store.committer.lock().unwrap();
                store.commit_batch();
            });
        })
    }

    fn commit_batch(&self) {
        let taken = self.requests.take(10);
        self.committed.lock().unwrap().extend(taken);
        self.is_committed.notify_all();
    }

    /// Queues a request, and commits in this thread if the hand-over leaves it to the caller.
    fn submit(&self, request: u32) {
        if !self.requests.push(request, false).unwrap() {
            self.requests.commit_if_free(1, |requests| !requests.is_empty(), || {
                let Ok(_committer) = self.committer.try_lock() else { return false };
                self.commit_batch();
                true
            });
        }
        self.wait_for(request);
    }

    /// Waits until a request is committed, as a caller waits for its reply.
    fn wait_for(&self, request: u32) {
        let mut committed = self.committed.lock().unwrap();
        while !committed.contains(&request) {
            committed = self.is_committed.wait(committed).unwrap();
        }
    }

    /// Closes the store, and checks that each request was committed once.
    fn end(&self, thread: thread::JoinHandle<()>, mut expected: Vec<u32>) {
        self.requests.close();
        thread.join().unwrap();
        let mut committed = self.committed.lock().unwrap().clone();
        committed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(committed, expected);
    }
}

/// Callers whose requests only the thread commits, as with durability level `full`.
fn thread_commits() {
    let store = Store::new();
    let thread = store.start();
    let caller = thread::spawn({
        let store = Arc::clone(&store);
        move || {
            store.requests.push(1, true).unwrap();
            store.wait_for(1);
        }
    });
    store.requests.push(2, true).unwrap();
    store.wait_for(2);
    caller.join().unwrap();
    store.end(thread, vec![1, 2]);
}

/// Callers that commit themselves if the writer is free, as with the other levels.
fn callers_commit() {
    let store = Store::new();
    let thread = store.start();
    let caller = thread::spawn({
        let store = Arc::clone(&store);
        move || store.submit(1)
    });
    store.submit(2);
    caller.join().unwrap();
    store.end(thread, vec![1, 2]);
}

/// A caller that is dropped between queueing and committing, beside another one.
fn caller_is_gone() {
    let store = Store::new();
    let thread = store.start();
    let caller = thread::spawn({
        let store = Arc::clone(&store);
        move || {
            if !store.requests.push(1, false).unwrap() {
                store.requests.wake_thread();
            }
        }
    });
    store.submit(2);
    caller.join().unwrap();
    store.wait_for(1);
    store.end(thread, vec![1, 2]);
}

/// A store that is dropped while a request waits for the thread.
fn store_ends() {
    let store = Store::new();
    let thread = store.start();
    store.requests.push(1, true).unwrap();
    store.end(thread, vec![1]);
}
