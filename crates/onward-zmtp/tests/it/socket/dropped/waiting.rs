//! A future that waits.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use crate::socket::support::events::until;

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// A future that was polled and waits, with its own waker.
pub(super) struct Waiting<F> {
    future: Pin<Box<F>>,
    flag: Arc<Flag>,
}

impl<F: Future> Waiting<F> {
    pub(super) fn on(future: F) -> Self {
        let mut waiting = Self { future: Box::pin(future), flag: Arc::default() };
        waiting.poll();
        waiting
    }

    /// Polls it once, which must return `Pending`.
    pub(super) fn poll(&mut self) {
        self.flag.0.store(false, Ordering::Release);
        let waker = Waker::from(self.flag.clone());
        assert!(self.future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(), "it does not wait");
    }

    pub(super) fn is_woken(&self) -> bool {
        self.flag.0.load(Ordering::Acquire)
    }

    pub(super) async fn woken(&self) {
        until(|| self.is_woken()).await;
    }

    /// Waits until it is woken, and runs it to its end.
    pub(super) async fn woken_and_finished(self) -> F::Output {
        self.woken().await;
        self.future.await
    }

    /// Waits until it is woken, and drops it.
    pub(super) async fn woken_and_dropped(self) {
        self.woken().await;
    }
}
