//! A reading task without a runtime, so that the test sees when it was woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use onward_zmtp::FairQueue;

use super::channel::Source;

pub(crate) type Queue = FairQueue<u32, Source>;

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) struct Reader {
    wakes: Arc<Wakes>,
    waker: Waker,
}

impl Reader {
    pub(crate) fn new() -> Self {
        let wakes = Arc::new(Wakes::default());
        Self { waker: wakes.clone().into(), wakes }
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    pub(crate) fn poll(&self, queue: &mut Queue) -> Poll<Option<(u32, u32)>> {
        queue.poll_recv(&mut Context::from_waker(&self.waker))
    }

    pub(crate) fn poll_many(&self, queue: &mut Queue, messages: &mut Vec<(u32, u32)>, limit: usize) -> Poll<usize> {
        queue.poll_recv_many(&mut Context::from_waker(&self.waker), messages, limit)
    }

    /// Returns true if it was woken since the last call.
    pub(crate) fn was_woken(&self) -> bool {
        self.wakes.0.swap(0, Ordering::SeqCst) > 0
    }

    /// Reads as a task does: polls until `Pending`, and again if that came with a wake-up.
    pub(crate) fn read_all(&self, queue: &mut Queue) -> Vec<(u32, u32)> {
        let mut messages = Vec::new();
        loop {
            match self.poll(queue) {
                Poll::Ready(Some(message)) => messages.push(message),
                Poll::Ready(None) => return messages,
                Poll::Pending if self.was_woken() => {}
                Poll::Pending => return messages,
            }
        }
    }
}
