//! A store whose calls fail at once while it does not work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onward_store::{Clock, Error, Outcome, Read, ReadReply, Store, StoreDecorator, StoreFuture, Write};

use super::breaker::{Admitted, Breaker, Change};
use crate::http::bounds;

/// The breakers of a store. Reads and writes have one each, because a store on a full disk can
/// still be read.
#[derive(Debug)]
pub(crate) struct Circuits {
    clock: Arc<dyn Clock>,
    reads: Mutex<Breaker>,
    writes: Mutex<Breaker>,
}

/// The direction of a call.
#[derive(Debug, Clone, Copy)]
enum Direction {
    Read,
    Write,
}

/// A store in front of another one, which it does not call while a breaker is open.
#[derive(Debug)]
pub(crate) struct BreakingStore {
    inner: Arc<dyn Store>,
    circuits: Arc<Circuits>,
}

impl BreakingStore {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        let clock = inner.clock();
        let circuits = Arc::new(Circuits { clock, reads: Mutex::default(), writes: Mutex::default() });
        Self { inner, circuits }
    }

    pub(crate) fn circuits(&self) -> Arc<Circuits> {
        Arc::clone(&self.circuits)
    }

    /// Makes a call, if the breaker of its direction admits it.
    fn call<'a, T: 'a>(
        &'a self,
        direction: Direction,
        call: impl FnOnce() -> StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        match self.circuits.begin(direction) {
            Ok(watched) => {
                let call = call();
                Box::pin(async move { watched.until_end(call).await })
            }
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }
}

impl StoreDecorator for BreakingStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        self.call(Direction::Write, || self.inner.apply(writes))
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        self.call(Direction::Read, || self.inner.read(read))
    }
}

impl Circuits {
    /// Returns the time until the store is read again, if reads are refused now.
    pub(crate) fn reads_refused(&self) -> Option<Duration> {
        self.breaker(Direction::Read).wait(self.clock.steady())
    }

    /// Returns the time until the store is written again, if writes are refused now.
    pub(crate) fn writes_refused(&self) -> Option<Duration> {
        self.breaker(Direction::Write).wait(self.clock.steady())
    }

    fn breaker(&self, direction: Direction) -> MutexGuard<'_, Breaker> {
        let breaker = match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        };
        breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Self>, direction: Direction) -> Result<Watched, Error> {
        let now = self.clock.steady();
        match self.breaker(direction).admit(now) {
            Ok(admitted) => {
                Ok(Watched { circuits: Arc::clone(self), direction, admitted, begun: now, has_ended: false })
            }
            Err(wait) => {
                Err(Error::busy(format!("the store failed several times in a row; the next trial is in {wait:?}")))
            }
        }
    }
}

/// A call that reports its end to the breaker.
#[derive(Debug)]
struct Watched {
    circuits: Arc<Circuits>,
    direction: Direction,
    admitted: Admitted,
    begun: Duration,
    has_ended: bool,
}

impl Watched {
    async fn until_end<T>(mut self, call: StoreFuture<'_, T>) -> Result<T, Error> {
        let result = call.await;
        self.has_ended = true;
        self.note(!result.as_ref().is_err_and(is_failure));
        result
    }

    fn note(&self, has_succeeded: bool) {
        let now = self.circuits.clock.steady();
        let mut breaker = self.circuits.breaker(self.direction);
        let change = if has_succeeded { breaker.succeeded() } else { breaker.failed(self.admitted, now) };
        drop(breaker);
        let direction = match self.direction {
            Direction::Read => "reads",
            Direction::Write => "writes",
        };
        match change {
            Some(Change::Opened(pause)) => {
                tracing::error!(direction, ?pause, "the store fails again and again; requests are refused for a while");
            }
            Some(Change::Closed) => tracing::warn!(direction, "the store works again; requests are served"),
            None => {}
        }
    }
}

impl Drop for Watched {
    /// Counts a call that was given up after a long time as a failure. One that was given up soon,
    /// because its client has gone, shows nothing.
    fn drop(&mut self) {
        let took = self.circuits.clock.steady().saturating_sub(self.begun);
        if !self.has_ended && took >= bounds::STORE_HANGS {
            self.note(false);
        }
    }
}

/// Returns true if an error shows that the store does not work. Others are about one request or one
/// record.
fn is_failure(error: &Error) -> bool {
    !(error.is_invalid() || error.is_not_found() || error.is_corrupt() || error.refusal().is_some())
}
