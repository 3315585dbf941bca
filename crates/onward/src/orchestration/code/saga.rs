//! Sagas: steps that are undone in reverse order when a later one fails, or when cancellation of
//! the orchestration is requested.
//!
//! A saga within a saga leaves a request to cancel to the outermost one, which drops everything
//! within it. A dropped saga passes its compensations to the one around it, so the outermost saga
//! undoes all steps, the last one first.

use std::cell::RefCell;
use std::fmt;
use std::future::{IntoFuture, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::context::OrchestrationContext;
use crate::handlers::{AlternativeEnd, Failure};

/// A function that undoes a step. It is called only when the step is undone.
type Compensation = Box<dyn FnOnce(OrchestrationContext) -> Undoing + Send>;

type Undoing = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// The steps of a saga that have succeeded, each with its compensation. Made by
/// [`OrchestrationContext::saga`].
#[derive(Clone)]
pub struct Saga {
    context: OrchestrationContext,
    compensations: Arc<Mutex<Vec<Compensation>>>,
    /// The saga in whose steps or compensations this one was begun.
    outer: Option<Arc<Self>>,
    /// The number of sagas that undo their steps, in this one and in all around it.
    undoing: Arc<AtomicUsize>,
}

thread_local! {
    /// The innermost saga whose code is polled on this thread.
    static POLLED: RefCell<Option<Arc<Saga>>> = const { RefCell::new(None) };
}

/// Makes a saga the polled one for as long as it lives.
struct Polled(Option<Arc<Saga>>);

impl Polled {
    fn enter(saga: &Arc<Saga>) -> Self {
        Self(POLLED.replace(Some(Arc::clone(saga))))
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        let _ended = POLLED.replace(self.0.take());
    }
}

/// Counts a saga that undoes its steps for as long as it lives.
struct Undoes<'a>(&'a AtomicUsize);

impl<'a> Undoes<'a> {
    fn begin(undoing: &'a AtomicUsize) -> Self {
        undoing.fetch_add(1, Ordering::Relaxed);
        Self(undoing)
    }
}

impl Drop for Undoes<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Passes the compensations that are left at the end of a saga to the one around it.
struct PassOn(Arc<Saga>);

impl Drop for PassOn {
    fn drop(&mut self) {
        let left = std::mem::take(&mut *self.0.compensations());
        if let Some(outer) = &self.0.outer {
            outer.compensations().extend(left);
        }
    }
}

impl fmt::Debug for Saga {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saga").field("compensations", &self.compensations().len()).finish_non_exhaustive()
    }
}

impl Saga {
    /// Begins a saga within the one whose code is polled, if there is one.
    fn begin(context: OrchestrationContext) -> Arc<Self> {
        let outer = POLLED.with_borrow(Clone::clone);
        let undoing = outer.as_ref().map_or_else(Arc::default, |outer| Arc::clone(&outer.undoing));
        Arc::new(Self { context, compensations: Arc::default(), outer, undoing })
    }

    /// Returns true if a request to cancel does not stop the steps now: the outermost saga drops
    /// them, and waits until the sagas in it have undone what failed.
    fn leaves_cancellation(&self) -> bool {
        self.outer.is_some() || self.undoing.load(Ordering::Relaxed) > 0
    }

    /// Polls the steps, or returns `None` if cancellation was requested and they are to be undone.
    fn poll_steps<T>(
        self: &Arc<Self>,
        context: &mut Context<'_>,
        steps: Pin<&mut impl Future<Output = T>>,
        cancelled: Pin<&mut impl Future<Output = ()>>,
    ) -> Poll<Option<T>> {
        let polled = Polled::enter(self);
        let ended = steps.poll(context);
        drop(polled);
        match ended {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if self.leaves_cancellation() => Poll::Pending,
            Poll::Pending => cancelled.poll(context).map(|()| None),
        }
    }

    fn compensations(&self) -> MutexGuard<'_, Vec<Compensation>> {
        self.compensations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Awaits a step, and registers its compensation if it has succeeded: `undo` gets what the step
    /// returned.
    ///
    /// A step that fails, or that a cancellation interrupts, is not undone by this. If its effect
    /// may remain (a charge whose reply was lost), register the compensation
    /// [before](Self::compensate_with) the step. Such a compensation must also work if nothing was
    /// done.
    ///
    /// # Errors
    /// The failure of the step.
    pub async fn step<O, E, S, U, F, R, G>(&self, step: S, undo: U) -> Result<O, Failure>
    where
        S: IntoFuture<Output = Result<O, E>>,
        E: Into<Failure>,
        O: Clone + Send + 'static,
        U: FnOnce(OrchestrationContext, O) -> F + Send + 'static,
        F: IntoFuture<Output = Result<R, G>>,
        F::IntoFuture: Send + 'static,
        G: Into<Failure>,
    {
        let output = step.await.map_err(Into::into)?;
        let done = output.clone();
        self.compensate_with(move |context| undo(context, done));
        Ok(output)
    }

    /// Registers a compensation. The last one registered runs first.
    pub fn compensate_with<U, F, R, G>(&self, undo: U)
    where
        U: FnOnce(OrchestrationContext) -> F + Send + 'static,
        F: IntoFuture<Output = Result<R, G>>,
        F::IntoFuture: Send + 'static,
        G: Into<Failure>,
    {
        let compensation = move |context| {
            let undoing = undo(context).into_future();
            Box::pin(async move { undoing.await.map(drop).map_err(Into::into) }) as Undoing
        };
        self.compensations().push(Box::new(compensation));
    }

    /// Drops the compensations of steps that stay.
    fn forget(&self) {
        // Dropped after the lock is released: they may own a handle of this saga.
        let _stay = std::mem::take(&mut *self.compensations());
    }

    /// Runs the compensations, the last one first, even if one of them fails. Returns the errors.
    async fn compensate(self: &Arc<Self>) -> Vec<String> {
        let _undoes = Undoes::begin(&self.undoing);
        let mut failed = Vec::new();
        loop {
            // The lock must be free while the compensation runs, because it may register others.
            let next = self.compensations().pop();
            let Some(compensation) = next else { return failed };
            let mut undoing = compensation(self.context.clone());
            let undone = poll_fn(|context| {
                // A saga in a compensation is part of this one, so that no cancellation stops it.
                let _polled = Polled::enter(self);
                undoing.as_mut().poll(context)
            });
            if let Err(failure) = undone.await {
                failed.push(failure.message().to_owned());
            }
        }
    }
}

impl OrchestrationContext {
    /// Runs steps as a saga, which get this context again. If `code` fails, or cancellation is
    /// requested while it runs, the [compensations](Saga::step) of the succeeded steps run in
    /// reverse order, one after the other.
    ///
    /// After a failure it returns that failure. After a request to cancel, `code` is dropped where
    /// it awaits, and the returned failure ends the orchestration as cancelled. Later code of the
    /// orchestration handles [requests to cancel](Self::cancelled) itself, as if it had called
    /// `cancelled`.
    ///
    /// A failed compensation does not stop the others; the orchestration then fails with their
    /// errors as well. A further request to cancel does not stop them. A
    /// [`continue_as_new`](Self::continue_as_new) ends the saga without compensations.
    ///
    /// A saga may contain others. After a request to cancel, the outermost one undoes the steps of
    /// all that have not ended. A saga that is dropped, for example because it lost a
    /// [`select`](super::select), is undone with the one around it; the outermost one, dropped,
    /// undoes nothing. The steps of a saga that has succeeded stay, unless it was a
    /// [step](Saga::step) with a compensation itself. A panic
    /// makes the orchestration a dead letter, which continues where it was when its code is fixed
    /// and the task retried.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use onward::orchestration::OrchestrationContext;
    /// use onward::prelude::*;
    /// # use onward::TaskState;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Trip;
    /// # impl Task for Trip {
    /// #     const KIND: &'static str = "trip";
    /// #     const ORCHESTRATION: bool = true;
    /// #     type Output = String;
    /// # }
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Book(String);
    /// # impl Task for Book { const KIND: &'static str = "book"; type Output = u32; }
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Release(u32);
    /// # impl Task for Release { const KIND: &'static str = "release"; type Output = (); }
    ///
    /// async fn trip(_: Trip, context: OrchestrationContext) -> Result<String, Failure> {
    ///     context
    ///         .saga(|saga, context| async move {
    ///             let book = |what: &str| context.activity(Book(what.to_owned()));
    ///             let flight = saga
    ///                 .step(book("flight"), |context, flight| context.activity(Release(flight)))
    ///                 .await?;
    ///             let hotel = saga
    ///                 .step(book("hotel"), |context, hotel| context.activity(Release(hotel)))
    ///                 .await?;
    ///             Ok(format!("{flight} and {hotel}"))
    ///         })
    ///         .await
    /// }
    ///
    /// let engine = Engine::builder().memory().open().await?;
    /// engine.orchestrate(trip);
    /// engine.register(|booking: Book, _| async move {
    ///     if booking.0 == "flight" { Ok(17) } else { Err(Failure::permanent("no room")) }
    /// });
    /// engine.register(|release: Release, _| async move { assert_eq!(release.0, 17); Ok(()) });
    /// let trip = engine.submit(Trip).await?;
    /// engine.run_until_idle().await?;
    /// assert!(trip.wait().await.unwrap_err().to_string().contains("no room"));
    /// assert_eq!(engine.tasks().kind("release").state(TaskState::Completed).count().await?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The failure of `code`, or one that ends the orchestration as cancelled. Either includes the
    /// errors of compensations.
    pub async fn saga<T, F, Fut>(&self, code: F) -> Result<T, Failure>
    where
        F: FnOnce(Saga, Self) -> Fut,
        Fut: Future<Output = Result<T, Failure>>,
    {
        // Kept to the end, because a request to cancel that comes while compensations run must not
        // stop them.
        let mut cancelled = pin!(self.cancelled());
        let saga = Saga::begin(self.clone());
        let _pass_on = PassOn(Arc::clone(&saga));
        let ended = {
            let mut steps = pin!(code(Saga::clone(&saga), self.clone()));
            poll_fn(|context| saga.poll_steps(context, steps.as_mut(), cancelled.as_mut())).await
        };
        let ended = ended.unwrap_or_else(|| {
            Err(Failure::with_alternative_end(AlternativeEnd::Cancelled, "it was cancelled, and its steps were undone"))
        });
        match ended {
            Err(failure) if !matches!(failure.alternative_end(), Some(AlternativeEnd::ContinueAsNew(_))) => {
                Err(with_failed(failure, &saga.compensate().await))
            }
            ended => {
                saga.forget();
                ended
            }
        }
    }
}

/// Returns the failure of a saga with the errors of its compensations.
fn with_failed(failure: Failure, failed: &[String]) -> Failure {
    if failed.is_empty() {
        return failure;
    }
    let is_cancelled = matches!(failure.alternative_end(), Some(AlternativeEnd::Cancelled));
    let reason = if is_cancelled { "it was cancelled" } else { failure.message() };
    let (count, errors) = (failed.len(), failed.join("; "));
    Failure::permanent(format!("{reason}; {count} of its compensations failed: {errors}"))
}
