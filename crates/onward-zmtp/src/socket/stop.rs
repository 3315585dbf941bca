//! Whether a connection is to end.

use std::pin::Pin;
use std::task::{Context, Waker};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// A token as a task sees it that asks in each of its turns.
///
/// To poll the token's future costs as much as a tenth of a turn with a small message. So it is polled once, to be woken, and again only for another task; otherwise
/// the token is looked at.
pub(super) struct Stop<'a> {
    token: &'a CancellationToken,
    cancelled: Pin<Box<WaitForCancellationFuture<'a>>>,
    /// Who is woken.
    waker: Option<Waker>,
}

impl<'a> Stop<'a> {
    pub(super) fn new(token: &'a CancellationToken) -> Self {
        Self { token, cancelled: Box::pin(token.cancelled()), waker: None }
    }

    /// Whether it is to end. If not, the task is woken when it is.
    #[inline]
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> bool {
        match &self.waker {
            Some(known) if known.will_wake(context.waker()) => self.token.is_cancelled(),
            _ => self.wait(context),
        }
    }

    #[cold]
    fn wait(&mut self, context: &mut Context<'_>) -> bool {
        self.waker = Some(context.waker().clone());
        self.cancelled.as_mut().poll(context).is_ready()
    }
}
