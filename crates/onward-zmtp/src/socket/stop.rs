//! Whether a connection is to end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use atomic_waker::AtomicWaker;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// A token as a task sees it that asks in each of its turns.
///
/// To poll the token's future costs as much as a tenth of a turn with a small message, and the token itself has a lock. So the future is polled once, with a waker
/// that leaves a sign; and again only for another task.
pub(super) struct Stop<'a> {
    cancelled: Pin<Box<WaitForCancellationFuture<'a>>>,
    sign: Arc<Sign>,
    /// Who is woken.
    waker: Option<Waker>,
}

/// That the token was cancelled.
#[derive(Default)]
struct Sign {
    is_given: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Sign {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_given.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<'a> Stop<'a> {
    pub(super) fn new(token: &'a CancellationToken) -> Self {
        Self { cancelled: Box::pin(token.cancelled()), sign: Arc::default(), waker: None }
    }

    /// Whether it is to end. If not, the task is woken when it is.
    #[inline]
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> bool {
        match &self.waker {
            Some(known) if known.will_wake(context.waker()) => self.sign.is_given.load(Ordering::Acquire),
            _ => self.wait(context),
        }
    }

    #[cold]
    fn wait(&mut self, context: &mut Context<'_>) -> bool {
        self.waker = Some(context.waker().clone());
        self.sign.task.register(context.waker());
        let sign = Waker::from(self.sign.clone());
        self.cancelled.as_mut().poll(&mut Context::from_waker(&sign)).is_ready()
    }
}
