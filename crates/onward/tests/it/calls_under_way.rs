//! A store in front of another one that counts its calls under way.

use onward_store::{Outcome, Read, ReadReply, Store, StoreDecorator, StoreFuture, Write};
use tokio::sync::watch;

/// Turns of the runtime between two calls: the reply reaches the dispatcher, the dispatcher starts
/// a handler, the handler ends, and the dispatcher makes the next call.
const TURNS: usize = 4;

/// The number of calls of a store that are under way.
#[derive(Debug, Clone)]
pub(crate) struct CallsUnderWay(watch::Sender<usize>);

impl Default for CallsUnderWay {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

/// A call under way. It counts as long as this value lives, even if the caller drops the call.
struct UnderWay<'a>(&'a CallsUnderWay);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|calls| *calls -= 1);
    }
}

impl CallsUnderWay {
    fn watch<'a, T: 'a>(&'a self, answer: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(async move {
            self.0.send_modify(|calls| *calls += 1);
            let _under_way = UnderWay(self);
            answer.await
        })
    }

    /// Waits until no call is under way and every task of the runtime has run since.
    pub(crate) async fn settled(&self) {
        let mut calls = self.0.subscribe();
        let mut turns = 0;
        while turns < TURNS {
            if *calls.borrow_and_update() == 0 {
                tokio::task::yield_now().await;
                turns += 1;
            } else {
                calls.changed().await.unwrap();
                turns = 0;
            }
        }
    }
}

/// A store whose calls are counted.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    pub(crate) inner: S,
    pub(crate) calls: CallsUnderWay,
}

impl<S: Store> StoreDecorator for Watched<S> {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        self.calls.watch(self.inner.apply(writes))
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        self.calls.watch(self.inner.read(read))
    }
}
