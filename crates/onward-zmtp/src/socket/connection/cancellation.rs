//! A cheap check for the cancellation of a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use atomic_waker::AtomicWaker;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// A cancellation token for a task that checks it in each of its turns.
///
/// Polling the token's future costs up to a tenth of a turn with a small message, and the token
/// itself takes a lock. The future is therefore polled once, with a waker that sets a flag. It is
/// polled again only for another task.
pub(super) struct CancellationFlag<'a> {
    cancelled: Pin<Box<WaitForCancellationFuture<'a>>>,
    flag: Arc<Flag>,
    /// The waker of the task that was registered last.
    waker: Option<Waker>,
}

/// The flag that the token was cancelled.
#[derive(Default)]
struct Flag {
    is_set: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_set.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<'a> CancellationFlag<'a> {
    pub(super) fn new(token: &'a CancellationToken) -> Self {
        Self { cancelled: Box::pin(token.cancelled()), flag: Arc::default(), waker: None }
    }

    /// Returns true if the connection must end. If not, the task is woken when it must.
    #[inline]
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> bool {
        match &self.waker {
            Some(known) if known.will_wake(context.waker()) => self.flag.is_set.load(Ordering::Acquire),
            _ => self.wait(context),
        }
    }

    #[cold]
    fn wait(&mut self, context: &mut Context<'_>) -> bool {
        self.waker = Some(context.waker().clone());
        self.flag.task.register(context.waker());
        let flag = Waker::from(self.flag.clone());
        self.cancelled.as_mut().poll(&mut Context::from_waker(&flag)).is_ready()
    }
}
