//! A source that the test feeds.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

/// The reaction of a source to one poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Give(u32),
    /// Wakes itself and returns `Pending`, as a socket does when the task has used up its share of
    /// the runtime.
    Stall,
    End,
}

#[derive(Debug, Default)]
struct Shared {
    steps: VecDeque<Step>,
    waker: Option<Waker>,
    polls: usize,
    dropped: bool,
}

/// The test's side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Feeder(Arc<Mutex<Shared>>);

/// The queue's side.
#[derive(Debug)]
pub(crate) struct Source(Feeder);

pub(crate) fn channel() -> (Feeder, Source) {
    let feeder = Feeder::default();
    (feeder.clone(), Source(feeder))
}

/// Returns a source that has these messages, and then nothing for now.
pub(crate) fn source_of(messages: impl IntoIterator<Item = u32>) -> Source {
    let (feeder, source) = channel();
    messages.into_iter().for_each(|message| feeder.feed(Step::Give(message)));
    source
}

impl Feeder {
    pub(crate) fn feed(&self, step: Step) {
        let waker = {
            let mut shared = self.0.lock().unwrap();
            shared.steps.push_back(step);
            shared.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Wakes the source although it has nothing.
    pub(crate) fn nudge(&self) {
        let waker = self.0.lock().unwrap().waker.clone();
        waker.expect("the source has been polled").wake();
    }

    /// Returns the waker that the source was last polled with.
    pub(crate) fn waker(&self) -> Option<Waker> {
        self.0.lock().unwrap().waker.clone()
    }

    /// Returns the reaction to the next poll; `None` if it will find nothing.
    pub(crate) fn next_step(&self) -> Option<Step> {
        self.0.lock().unwrap().steps.front().copied()
    }

    pub(crate) fn polls(&self) -> usize {
        self.0.lock().unwrap().polls
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.0.lock().unwrap().dropped
    }
}

impl Stream for Source {
    type Item = u32;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<u32>> {
        let mut shared = self.0.0.lock().unwrap();
        shared.polls += 1;
        match shared.steps.pop_front() {
            Some(Step::Give(message)) => return Poll::Ready(Some(message)),
            Some(Step::End) => return Poll::Ready(None),
            Some(Step::Stall) => context.waker().wake_by_ref(),
            None => shared.waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().dropped = true;
    }
}
