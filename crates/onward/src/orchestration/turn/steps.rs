//! The steps that run in a turn.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use crate::handlers::Failure;
use crate::orchestration::replay::{NewStep, StepEnd};

/// The running steps.
#[derive(Default)]
pub(super) struct Steps(FuturesUnordered<RunningStep>);

struct RunningStep {
    operation: u64,
    name: String,
    future: BoxFuture<'static, StepEnd>,
}

/// A step that has ended.
pub(super) struct EndedStep {
    pub(in crate::orchestration) operation: u64,
    pub(in crate::orchestration) name: String,
    pub(super) end: StepEnd,
}

impl Future for RunningStep {
    type Output = EndedStep;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<EndedStep> {
        let Poll::Ready(end) = self.future.poll_unpin(context) else { return Poll::Pending };
        let (operation, name) = (self.operation, std::mem::take(&mut self.name));
        Poll::Ready(EndedStep { operation, name, end })
    }
}

impl Steps {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn begin(&mut self, step: NewStep) {
        let NewStep { operation, name, future } = step;
        let step = name.clone();
        let caught =
            async move { AssertUnwindSafe(future).catch_unwind().await.unwrap_or_else(|it| panicked(&step, it)) };
        self.0.push(RunningStep { operation, name, future: caught.boxed() });
    }

    /// Aborts steps where they await.
    pub(super) fn abort(&mut self, operations: &[u64]) {
        if !operations.is_empty() {
            let running = std::mem::take(&mut self.0);
            self.0 = running.into_iter().filter(|step| !operations.contains(&step.operation)).collect();
        }
    }

    /// Waits for the next step that ends, or returns `None` if none runs. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<EndedStep> {
        self.0.next().await
    }

    /// Returns a step that has already ended.
    pub(super) fn next_ended(&mut self) -> Option<EndedStep> {
        self.0.next().now_or_never().flatten()
    }
}

fn panicked(name: &str, panic: Box<dyn Any + Send>) -> StepEnd {
    StepEnd::Failed { error: format!("the step `{name}`: {}", Failure::of_panic(&*panic).message()) }
}
