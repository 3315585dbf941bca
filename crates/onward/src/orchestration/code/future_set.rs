//! Many futures that are awaited together. Each poll polls those that were woken since the last
//! one, in their order: the cost of an event does not depend on how many wait, and a replay polls
//! the same.

use std::collections::BTreeSet;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The futures that have been woken, by their places, and who is to hear of it.
#[derive(Debug)]
struct Woken(Mutex<State>);

#[derive(Debug)]
struct State {
    places: BTreeSet<usize>,
    waker: Waker,
}

impl Woken {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first place from `from` on.
    fn take_from(&self, from: usize) -> Option<usize> {
        let mut state = self.lock();
        let place = state.places.range(from..).next().copied()?;
        state.places.remove(&place);
        Some(place)
    }

    /// Wakes the next poller.
    fn register(&self, context: &Context<'_>) {
        self.lock().waker.clone_from(context.waker());
    }
}

/// Wakes one of the futures.
struct PlaceWaker {
    place: usize,
    woken: Arc<Woken>,
}

impl Wake for PlaceWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.woken.lock();
        if state.places.insert(self.place) {
            let waker = state.waker.clone();
            drop(state);
            waker.wake();
        }
    }
}

/// Futures that are awaited together.
pub(super) struct Gathered<F> {
    /// The futures that are not over, each with its waker.
    waiting: Vec<Option<(Pin<Box<F>>, Waker)>>,
    left: usize,
    woken: Arc<Woken>,
}

impl<F: Future> Gathered<F> {
    pub(in crate::orchestration) fn new(all: impl IntoIterator<Item = F>) -> Self {
        let futures: Vec<F> = all.into_iter().collect();
        let state = State { places: (0..futures.len()).collect(), waker: Waker::noop().clone() };
        let woken = Arc::new(Woken(Mutex::new(state)));
        let waker = |place| Waker::from(Arc::new(PlaceWaker { place, woken: Arc::clone(&woken) }));
        let with_waker = |(place, future)| Some((Box::pin(future), waker(place)));
        let waiting: Vec<_> = futures.into_iter().enumerate().map(with_waker).collect();
        Self { left: waiting.len(), waiting, woken }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Polls those that were woken, in their order. Each output goes to `take` with its place,
    /// until that breaks. Returns `Pending` if it has not and some still wait.
    pub(in crate::orchestration) fn poll<B>(
        &mut self,
        context: &Context<'_>,
        mut take: impl FnMut(usize, F::Output) -> ControlFlow<B>,
    ) -> Poll<ControlFlow<B>> {
        self.woken.register(context);
        let mut from = 0;
        // One before `from` that is woken meanwhile has its turn in the next poll, as if each poll
        // polled all of them.
        while let Some(place) = self.woken.take_from(from) {
            from = place + 1;
            let Some(Some((future, waker))) = self.waiting.get_mut(place) else { continue };
            let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) else { continue };
            self.waiting[place] = None;
            self.left -= 1;
            if let ControlFlow::Break(end) = take(place, output) {
                return Poll::Ready(ControlFlow::Break(end));
            }
        }
        if self.left == 0 { Poll::Ready(ControlFlow::Continue(())) } else { Poll::Pending }
    }
}
