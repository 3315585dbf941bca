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
