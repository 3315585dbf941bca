//! Sagas: steps that are undone in reverse order when a later one fails, or when cancellation of
//! the orchestration is requested.

use std::fmt;
use std::future::{IntoFuture, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

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
}

impl fmt::Debug for Saga {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saga").field("compensations", &self.compensations().len()).finish_non_exhaustive()
    }
}

impl Saga {
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

    /// Runs the compensations, the last one first, even if one of them fails. Returns the errors.
    async fn compensate(&self) -> Vec<String> {
        let mut failed = Vec::new();
        loop {
            // The lock must be free while the compensation runs, because it may register others.
            let next = self.compensations().pop();
            let Some(compensation) = next else { return failed };
            if let Err(failure) = compensation(self.context.clone()).await {
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
    /// [`continue_as_new`](Self::continue_as_new) ends the saga without compensations. A panic
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
        let saga = Saga { context: self.clone(), compensations: Arc::default() };
        let ended = {
            let mut steps = pin!(code(saga.clone(), self.clone()));
            poll_fn(|context| match steps.as_mut().poll(context) {
                Poll::Ready(ended) => Poll::Ready(Some(ended)),
                Poll::Pending => cancelled.as_mut().poll(context).map(|()| None),
            })
            .await
        };
        let failure = match ended {
            Some(Ok(output)) => return Ok(output),
            Some(Err(failure)) if failure.alternative_end().is_some() => return Err(failure),
            Some(Err(failure)) => failure,
            None => {
                Failure::with_alternative_end(AlternativeEnd::Cancelled, "it was cancelled, and its steps were undone")
            }
        };
        Err(with_failed(failure, &saga.compensate().await))
    }
}

/// Returns the failure of a saga with the errors of its compensations.
fn with_failed(failure: Failure, failed: &[String]) -> Failure {
    if failed.is_empty() {
        return failure;
    }
    let reason = if failure.alternative_end().is_some() { "it was cancelled" } else { failure.message() };
    let (count, errors) = (failed.len(), failed.join("; "));
    Failure::permanent(format!("{reason}; {count} of its compensations failed: {errors}"))
}
