//! A source that another thread feeds.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use loom::sync::Mutex;

#[derive(Default)]
struct Shared {
    messages: VecDeque<u32>,
    closed: bool,
    waker: Option<Waker>,
}

#[derive(Clone)]
pub(crate) struct Feeder(Arc<Mutex<Shared>>);

pub(crate) struct Source(Feeder);

pub(crate) fn channel() -> (Feeder, Source) {
    let feeder = Feeder(Arc::new(Mutex::new(Shared::default())));
    (feeder.clone(), Source(feeder))
}

/// Returns a source with one message and nothing afterwards.
pub(crate) fn source_of(message: u32) -> Source {
    let (feeder, source) = channel();
    feeder.give(message);
    source
}

impl Feeder {
    pub(crate) fn give(&self, message: u32) {
        self.change(|shared| shared.messages.push_back(message));
    }

    pub(crate) fn close(&self) {
        self.change(|shared| shared.closed = true);
    }

    fn change(&self, change: impl FnOnce(&mut Shared)) {
        let waker = {
            let mut shared = self.0.lock().unwrap();
            change(&mut shared);
            shared.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Stream for Source {
    type Item = u32;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<u32>> {
        let mut shared = self.0.0.lock().unwrap();
        if let Some(message) = shared.messages.pop_front() {
            return Poll::Ready(Some(message));
        }
        if shared.closed {
            return Poll::Ready(None);
        }
        shared.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
