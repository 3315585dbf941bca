//! Many futures that are awaited together. Each poll polls those that were woken since the last
//! one, in their order. The cost of an event thus does not depend on the number of futures, and a
//! replay polls the same ones.

use std::collections::BTreeSet;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The indices of the woken futures, and the waker of the set.
#[derive(Debug)]
struct ReadySet(Mutex<ReadyState>);

#[derive(Debug)]
struct ReadyState {
    indices: BTreeSet<usize>,
    waker: Waker,
}

impl ReadySet {
    fn lock(&self) -> MutexGuard<'_, ReadyState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first index from `from` on.
    fn take_from(&self, from: usize) -> Option<usize> {
        let mut state = self.lock();
        let index = state.indices.range(from..).next().copied()?;
        state.indices.remove(&index);
        Some(index)
    }

    /// Registers the waker of the next poll.
    fn register(&self, context: &Context<'_>) {
        self.lock().waker.clone_from(context.waker());
    }
}

/// A waker of one future.
struct IndexWaker {
    index: usize,
    ready: Arc<ReadySet>,
}

impl Wake for IndexWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.ready.lock();
        if state.indices.insert(self.index) {
            let waker = state.waker.clone();
            drop(state);
            waker.wake();
        }
    }
}

/// Futures that are awaited together.
pub(super) struct FutureSet<F> {
    /// The futures that have not ended, each with its waker.
    waiting: Vec<Option<(Pin<Box<F>>, Waker)>>,
    remaining: usize,
    ready: Arc<ReadySet>,
}

impl<F: Future> FutureSet<F> {
    pub(in crate::orchestration) fn new(all: impl IntoIterator<Item = F>) -> Self {
        let futures: Vec<F> = all.into_iter().collect();
        let state = ReadyState { indices: (0..futures.len()).collect(), waker: Waker::noop().clone() };
        let ready = Arc::new(ReadySet(Mutex::new(state)));
        let waker = |index| Waker::from(Arc::new(IndexWaker { index, ready: Arc::clone(&ready) }));
        let with_waker = |(index, future)| Some((Box::pin(future), waker(index)));
        let waiting: Vec<_> = futures.into_iter().enumerate().map(with_waker).collect();
        Self { remaining: waiting.len(), waiting, ready }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Polls the woken futures, in their order. Each output goes to `take` with its index, until
    /// `take` breaks. Returns `Pending` if it did not break and some futures still wait.
    pub(in crate::orchestration) fn poll<B>(
        &mut self,
        context: &Context<'_>,
        mut take: impl FnMut(usize, F::Output) -> ControlFlow<B>,
    ) -> Poll<ControlFlow<B>> {
        self.ready.register(context);
        let mut from = 0;
        // A future before `from` that is woken during this loop has its turn in the next poll, as
        // if each poll polled all futures.
        while let Some(index) = self.ready.take_from(from) {
            from = index + 1;
            let Some(Some((future, waker))) = self.waiting.get_mut(index) else { continue };
            let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) else { continue };
            self.waiting[index] = None;
            self.remaining -= 1;
            if let ControlFlow::Break(end) = take(index, output) {
                return Poll::Ready(ControlFlow::Break(end));
            }
        }
        if self.remaining == 0 { Poll::Ready(ControlFlow::Continue(())) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::combinators::join_all;
    use super::*;

    const MANY: usize = 16_000;

    /// Futures that end one by one, and the number of polls of all of them.
    #[derive(Default)]
    struct OneByOne {
        wakers: Mutex<Vec<Waker>>,
        ended: AtomicUsize,
        polls: AtomicUsize,
    }

    /// Shows: D4
    #[test]
    fn an_end_polls_one_future_and_not_all() {
        let all = Arc::new(OneByOne::default());
        let one = |index| {
            let all = Arc::clone(&all);
            poll_fn(move |context| {
                all.polls.fetch_add(1, Ordering::Relaxed);
                if all.ended.load(Ordering::Relaxed) > index {
                    return Poll::Ready(index);
                }
                all.wakers.lock().unwrap().push(context.waker().clone());
                Poll::Pending
            })
        };
        let mut joined = std::pin::pin!(join_all((0..MANY).map(one)));
        let mut context = Context::from_waker(Waker::noop());
        for index in 0..MANY {
            assert!(joined.as_mut().poll(&mut context).is_pending());
            all.ended.store(index + 1, Ordering::Relaxed);
            let waker = all.wakers.lock().unwrap()[index].clone();
            waker.wake();
        }
        let Poll::Ready(outputs) = joined.as_mut().poll(&mut context) else { panic!("all have ended") };
        assert_eq!(outputs, (0..MANY).collect::<Vec<_>>());
        assert_eq!(all.polls.load(Ordering::Relaxed), 2 * MANY);
    }
}
