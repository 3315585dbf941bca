//! The locks, atomics and notifications of the hand-overs, in terms that loom can follow.

pub(crate) use loom::sync::atomic::{AtomicBool, Ordering, fence};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

/// A `tokio::sync::Notify` with one waiter at most: it keeps one permit.
#[derive(Debug)]
pub(crate) struct Notify {
    permit: Mutex<bool>,
    given: Condvar,
}

impl Notify {
    pub(crate) fn new() -> Self {
        Self { permit: Mutex::new(false), given: Condvar::new() }
    }

    pub(crate) fn notify_one(&self) {
        *self.permit.lock().unwrap() = true;
        self.given.notify_one();
    }

    /// Waits for the permit and takes it. It blocks its thread, which has nothing else to do.
    pub(crate) async fn notified(&self) {
        let mut permit = self.permit.lock().unwrap();
        while !*permit {
            permit = self.given.wait(permit).unwrap();
        }
        *permit = false;
    }
}
