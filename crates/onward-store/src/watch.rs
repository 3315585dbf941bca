//! A channel of the latest value, as `tokio::sync::watch` is, whose receivers wake in the order in
//! which they began to wait.
//!
//! tokio wakes the receivers of its channel in a random order. With this channel a program that
//! runs in one thread repeats a run exactly, which the simulation of the engine relies on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The sending half. Receivers learn of the end of the channel when all its clones are dropped.
#[derive(Debug)]
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
    /// Closes the channel when the last sender is dropped.
    _open: Arc<Open<T>>,
}

/// A receiver, which remembers the latest value that it has seen. A clone has seen the same.
#[derive(Debug)]
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The version of the latest value that was seen.
    seen: u64,
}

/// The error of a receiver whose senders are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

#[derive(Debug)]
struct Shared<T> {
    latest: Mutex<Latest<T>>,
    waiting: Notify,
}

#[derive(Debug)]
struct Latest<T> {
    value: T,
    /// The number of values sent after the first.
    version: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct Open<T>(Arc<Shared<T>>);

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Latest<T>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Open<T> {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.waiting.notify_waiters();
    }
}

impl<T> Sender<T> {
    /// Creates a channel with its first value, which new receivers have seen.
    #[must_use]
    pub fn new(value: T) -> Self {
        let latest = Mutex::new(Latest { value, version: 0, is_closed: false });
        let shared = Arc::new(Shared { latest, waiting: Notify::new() });
        Self { _open: Arc::new(Open(Arc::clone(&shared))), shared }
    }

    /// Creates a receiver that has seen the current value.
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver { shared: Arc::clone(&self.shared), seen: self.shared.lock().version }
    }

    /// Replaces the value and wakes the receivers.
    pub fn send(&self, value: T) {
        self.send_modify(|latest| *latest = value);
    }

    /// Changes the value and wakes the receivers.
    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// Changes the value, and wakes the receivers if `change` returns true. Returns its result.
    /// `change` must not use the channel.
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        let mut latest = self.shared.lock();
        let is_modified = change(&mut latest.value);
        latest.version += u64::from(is_modified);
        drop(latest);
        if is_modified {
            self.shared.waiting.notify_waiters();
        }
        is_modified
    }
}

impl<T: Copy> Sender<T> {
    /// Returns the current value.
    #[must_use]
    pub fn get(&self) -> T {
        self.shared.lock().value
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), _open: Arc::clone(&self._open) }
    }
}

impl<T> Receiver<T> {
    /// Waits for a value that was not seen yet, and marks it as seen. Cancel-safe: a wait that is
    /// dropped loses no value.
    ///
    /// # Errors
    ///
    /// Returns [`Closed`] if the latest value was seen and all senders are gone.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        loop {
            // The future exists before the look at the version, so that it is woken by every value
            // that the look does not find.
            let woken = self.shared.waiting.notified();
            {
                let latest = self.shared.lock();
                if latest.version != self.seen {
                    self.seen = latest.version;
                    return Ok(());
                }
                if latest.is_closed {
                    return Err(Closed);
                }
            }
            woken.await;
        }
    }

    /// Marks the current value as seen.
    pub fn mark_unchanged(&mut self) {
        self.seen = self.shared.lock().version;
    }
}

impl<T: Copy> Receiver<T> {
    /// Returns the current value, and does not mark it as seen.
    #[must_use]
    pub fn get(&self) -> T {
        self.shared.lock().value
    }

    /// Returns the current value and marks it as seen.
    pub fn get_and_mark(&mut self) -> T {
        let latest = self.shared.lock();
        self.seen = latest.version;
        latest.value
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), seen: self.seen }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Returns the result of a wait that is polled once and then dropped.
    fn polled_once<T>(wait: impl Future<Output = T>) -> Poll<T> {
        pin!(wait).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn receivers_wake_in_the_order_in_which_they_began_to_wait() {
        let sender = Sender::new(0);
        let woken = Arc::new(Mutex::new(Vec::new()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let waiting: Vec<_> = (0..100)
                .map(|number| {
                    let (mut receiver, woken) = (sender.subscribe(), Arc::clone(&woken));
                    tokio::spawn(async move {
                        receiver.changed().await.unwrap();
                        woken.lock().unwrap().push(number);
                    })
                })
                .collect();
            // The runtime starts only some tasks between two polls of this one.
            for _ in &waiting {
                tokio::task::yield_now().await;
            }
            sender.send(1);
            for wait in waiting {
                wait.await.unwrap();
            }
        });
        assert_eq!(*woken.lock().unwrap(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_value_sent_before_the_wait_ends_it() {
        let sender = Sender::new(0);
        let mut receiver = sender.subscribe();
        sender.send(1);
        assert_eq!(polled_once(receiver.changed()), Poll::Ready(Ok(())));
        assert!(polled_once(receiver.changed()).is_pending());
        assert_eq!(receiver.get(), 1);
    }

    #[test]
    fn a_wait_that_is_dropped_loses_no_value() {
        let sender = Sender::new(0);
        let mut receiver = sender.subscribe();
        assert!(polled_once(receiver.changed()).is_pending());
        sender.send(1);
        assert_eq!(polled_once(receiver.changed()), Poll::Ready(Ok(())));
    }

    #[test]
    fn an_unmodified_value_wakes_no_receiver() {
        let sender = Sender::new(0);
        let mut receiver = sender.subscribe();
        assert!(!sender.send_if_modified(|_| false));
        assert!(polled_once(receiver.changed()).is_pending());
    }

    #[test]
    fn the_end_of_the_last_sender_ends_a_wait_after_the_latest_value() {
        let sender = Sender::new(0);
        let (other, mut receiver) = (sender.clone(), sender.subscribe());
        drop(sender);
        assert!(polled_once(receiver.changed()).is_pending());
        other.send(1);
        drop(other);
        assert_eq!(polled_once(receiver.changed()), Poll::Ready(Ok(())));
        assert_eq!(polled_once(receiver.changed()), Poll::Ready(Err(Closed)));
    }
}
