//! Runs one attempt: its handler, its time, its interruption.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::CatchUnwind;
use onward_store::AfterFailure;
use tracing::Instrument;
use tracing::instrument::Instrumented;

use super::decide_end::{Answer, Circumstances, failed_for_good, not_started, verdict};
use crate::dispatch::claim_size::{Allowance, Policies, allowance};
use crate::dispatch::run_state::End;
use crate::engine::{InHandler, Run};
use crate::handlers::{
    Attempt, Context, FailedAttempt, Failure, Handler, HandlerFuture, Interruption, Output, clean_up,
};
use crate::timer;

/// A handler at work: a panic in it is an answer.
type Work = Instrumented<CatchUnwind<AssertUnwindSafe<InHandler<HandlerFuture>>>>;

/// Runs an attempt to its end. Never panics, whatever the handler does.
pub(crate) async fn drive(run: &Arc<Run>, attempt: &Arc<Attempt>) -> End {
    if let Some(interruption) = attempt.interruption() {
        return not_started(interruption);
    }
    let Some(handler) = run.handlers.get(&attempt.task.kind) else {
        return failed_for_good(format!("no handler is registered for the kind `{}`", attempt.task.kind));
    };
    let handler = &*handler;
    let allowance = allowance_of(run, handler, attempt);
    if allowance == Allowance::Passed {
        return failed_for_good(format!("the deadline had passed before attempt {} could start", attempt.task.attempt));
    }
    let started = note_start(run, attempt);
    if let Some(limit) = attempt.task.heartbeat_timeout.or(handler.options.heartbeat_timeout) {
        attempt.heartbeat.listen(limit, started);
    }
    let answer = match start(run, handler, attempt) {
        Ok(work) => attend(run, attempt, work, over_at(allowance, started)).await,
        Err(panicked) => Some(Err(panicked)),
    };
    clean_up(run, attempt, attempt.is_finished() || matches!(answer, Some(Ok(_)))).await;
    attempt.telemetry.attempt_seconds.record(run.inner.clock.steady().saturating_sub(started));
    judge(run, handler, attempt, allowance, answer)
}

fn allowance_of(run: &Run, handler: &Handler, attempt: &Attempt) -> Allowance {
    let timeout = attempt.task.timeout.or(handler.options.timeout).or(run.inner.settings.timeout);
    allowance(timeout, attempt.task.deadline, || run.inner.clock.now())
}

fn note_start(run: &Run, attempt: &Attempt) -> Duration {
    let started = run.inner.clock.steady();
    attempt.mark_started(started);
    run.inner.gauge.bandwidth.expect(attempt.task.expected_io);
    if attempt.task.attempt == 1 {
        attempt.telemetry.wait_seconds.record(run.inner.clock.now() - attempt.task.submitted_at);
    }
    started
}

/// Calls the handler, which may panic before it has become a future.
fn start(run: &Arc<Run>, handler: &Handler, attempt: &Arc<Attempt>) -> Result<Work, Failure> {
    let task = &attempt.task;
    let span = tracing::info_span!(
        "attempt",
        task = task.lease.task.0,
        kind = task.kind.as_str(),
        queue = task.queue.as_str(),
        attempt = task.attempt
    );
    let context = Context { attempt: Arc::clone(attempt), run: Arc::clone(run) };
    let call = || InHandler::call(&run.inner, || (handler.function)(context));
    let future = span.in_scope(|| catch_unwind(AssertUnwindSafe(call))).map_err(panicked)?;
    Ok(AssertUnwindSafe(future).catch_unwind().instrument(span))
}

/// Polls the handler until it answers, or until it was asked to stop and its grace is over.
async fn attend(run: &Run, attempt: &Attempt, mut work: Work, over_at: Option<Duration>) -> Answer {
    // Most handlers that do not wait never need a timer or a token: they are polled once before
    // either is made.
    let first = poll_fn(|context| Poll::Ready(Pin::new(&mut work).poll(context))).await;
    let answer = match first {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => until_over(run, attempt, &mut work, over_at).await,
    };
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(work)));
    match (answer, dropped) {
        (Some(Err(panic)), _) | (None, Err(panic)) => Some(Err(panicked(panic))),
        (Some(Ok(answer)), _) => Some(answer),
        (None, Ok(())) => None,
    }
}

async fn until_over(
    run: &Run,
    attempt: &Attempt,
    work: &mut Work,
    over_at: Option<Duration>,
) -> Option<<Work as Future>::Output> {
    let clock = &*run.inner.clock;
    tokio::select! {
        biased;
        answer = &mut *work => return Some(answer),
        () = attempt.token().cancelled() => {}
        () = time_over(run, over_at) => attempt.interrupt(Interruption::TimedOut),
        () = silence(run, attempt) => attempt.interrupt(Interruption::Silent),
    }
    let grace_over = clock.steady().saturating_add(run.inner.settings.grace);
    tokio::select! {
        biased;
        answer = work => Some(answer),
        () = timer::reached(clock, grace_over) => {
            let (task, kind) = (attempt.id().0, attempt.task.kind.as_str());
            tracing::warn!(task, kind, "the handler did not stop in its grace and is aborted");
            None
        }
    }
}

/// When an attempt's time is over, in steady time.
fn over_at(allowance: Allowance, started: Duration) -> Option<Duration> {
    match allowance {
        Allowance::Unlimited => None,
        Allowance::Timeout(limit) | Allowance::Deadline(limit) => Some(started.saturating_add(limit)),
        Allowance::Passed => Some(started),
    }
}

async fn time_over(run: &Run, over_at: Option<Duration>) {
    match over_at {
        Some(at) => timer::reached(&*run.inner.clock, at).await,
        None => std::future::pending().await,
    }
}

/// Completes when the handler has been silent for too long.
async fn silence(run: &Run, attempt: &Attempt) {
    let clock = &*run.inner.clock;
    while let Some(at) = attempt.heartbeat.silent_at() {
        if clock.steady() >= at {
            return;
        }
        timer::reached(clock, at).await;
    }
    std::future::pending().await
}

fn judge(run: &Arc<Run>, handler: &Handler, attempt: &Arc<Attempt>, allowance: Allowance, answer: Answer) -> End {
    if attempt.is_finished() {
        return End::Finished;
    }
    let answer = answer.map(|answer| answer.map(|output| Output(output.0.or_else(|| attempt.result.bytes()))));
    let settings = &run.inner.settings;
    let policies = Policies {
        task: attempt.task.retry,
        kind: handler.options.retry,
        queue: settings.queue_retry.get(&attempt.task.queue).copied(),
        engine: settings.retry,
    };
    verdict(
        answer,
        Circumstances {
            interruption: attempt.interruption(),
            overtime: &|| overtime(attempt, allowance),
            attempt: attempt.task.attempt,
            policy: policies.nearest(),
            review: &|failure, next| by_deadline(run, attempt, review(run, handler, attempt, failure, next)),
        },
    )
}

/// What the handler's failure policy makes of what the retry policy said.
fn review(
    run: &Arc<Run>,
    handler: &Handler,
    attempt: &Arc<Attempt>,
    failure: &Failure,
    next: AfterFailure,
) -> AfterFailure {
    let Some(policy) = &handler.options.failure_policy else { return next };
    let context = &Context { attempt: Arc::clone(attempt), run: Arc::clone(run) };
    policy.decide(FailedAttempt { context, failure, verdict: next.into() }).into()
}

/// No attempt is waited for that could not start before the deadline: the task ends with what went
/// wrong, now.
fn by_deadline(run: &Run, attempt: &Attempt, next: AfterFailure) -> AfterFailure {
    match (next, attempt.task.deadline) {
        (AfterFailure::Retry { after, .. }, Some(deadline)) if run.inner.clock.now().plus(after) >= deadline => {
            AfterFailure::Fail
        }
        _ => next,
    }
}

fn overtime(attempt: &Attempt, allowance: Allowance) -> String {
    if let (Some(Interruption::Silent), Some(limit)) = (attempt.interruption(), attempt.heartbeat.limit()) {
        return format!("no heartbeat for {limit:?}");
    }
    match allowance {
        Allowance::Timeout(limit) => format!("timed out after {limit:?}"),
        Allowance::Deadline(_) | Allowance::Passed => "the deadline passed while it ran".to_owned(),
        Allowance::Unlimited => "timed out".to_owned(),
    }
}

/// A panic as a failure: the task may be tried again, and the slot is free.
fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    let text = Failure::of_panic(&*panic);
    Failure::retryable(text.message().replacen("it", "the handler", 1))
}
