//! Runs one attempt: its handler, its time limits and its interruption.

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

use super::attempt_rules::{RetryPolicies, TimeLimit, time_limit};
use super::decide_end::{EndConditions, HandlerResult, decide_end, end_before_start, failed_permanently};
use crate::dispatch::run_state::AttemptEnd;
use crate::engine::{InHandler, Run};
use crate::handlers::{
    Attempt, Context, FailedAttempt, Failure, Handler, HandlerFuture, Interruption, Output, clean_up,
};
use crate::timer;

/// A running handler. A panic in it becomes a result.
type HandlerWork = Instrumented<CatchUnwind<AssertUnwindSafe<InHandler<HandlerFuture>>>>;

/// Runs an attempt to its end. It never panics, whatever the handler does.
pub(crate) async fn run_attempt(run: &Arc<Run>, attempt: &Arc<Attempt>) -> AttemptEnd {
    if let Some(interruption) = attempt.interruption() {
        return end_before_start(interruption);
    }
    let Some(handler) = run.handlers.get(&attempt.task.kind) else {
        return failed_permanently(format!("no handler is registered for the kind `{}`", attempt.task.kind));
    };
    let handler = &*handler;
    let time_limit = time_limit_of(run, handler, attempt);
    if time_limit == TimeLimit::Expired {
        return failed_permanently(format!(
            "the deadline had passed before attempt {} could start",
            attempt.task.attempt
        ));
    }
    let started = note_start(run, attempt);
    if let Some(limit) = attempt.task.heartbeat_timeout.or(handler.options.heartbeat_timeout) {
        attempt.heartbeat.listen(limit, started);
    }
    let stop_at = stop_at(time_limit, started);
    stop_at.into_iter().for_each(|at| attempt.set_stop_at(at));
    let result = match start(run, handler, attempt) {
        Ok(work) => await_handler(run, attempt, work, stop_at).await,
        Err(panicked) => Some(Err(panicked)),
    };
    // The slot stays taken until the clean-up is over, which may use what the handler used.
    clean_up(run, attempt, attempt.is_finished() || matches!(result, Some(Ok(_)))).await;
    attempt.telemetry.attempt_seconds.record(run.inner.clock.steady().saturating_sub(started));
    end_of_attempt(run, handler, attempt, time_limit, result)
}

fn time_limit_of(run: &Run, handler: &Handler, attempt: &Attempt) -> TimeLimit {
    let timeout = attempt.task.timeout.or(handler.options.timeout).or(run.inner.settings.timeout);
    time_limit(timeout, attempt.task.deadline, || run.inner.clock.now())
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

/// Calls the handler, which may panic before it returns a future.
fn start(run: &Arc<Run>, handler: &Handler, attempt: &Arc<Attempt>) -> Result<HandlerWork, Failure> {
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

/// Polls the handler until it returns, or until it was asked to stop and its grace is over.
async fn await_handler(
    run: &Run,
    attempt: &Attempt,
    mut work: HandlerWork,
    stop_at: Option<Duration>,
) -> HandlerResult {
    // Most handlers that do not wait need neither a timer nor a token, so the first poll comes
    // before either is created.
    let first = poll_fn(|context| Poll::Ready(Pin::new(&mut work).poll(context))).await;
    let result = match first {
        Poll::Ready(result) => Some(result),
        Poll::Pending => await_stop(run, attempt, &mut work, stop_at).await,
    };
    // The drop of a handler's future may panic too.
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(work)));
    match (result, dropped) {
        (Some(Err(panic)), _) | (None, Err(panic)) => Some(Err(panicked(panic))),
        (Some(Ok(result)), _) => Some(result),
        (None, Ok(())) => None,
    }
}

async fn await_stop(
    run: &Run,
    attempt: &Attempt,
    work: &mut HandlerWork,
    stop_at: Option<Duration>,
) -> Option<<HandlerWork as Future>::Output> {
    let clock = &*run.inner.clock;
    // A result that is ready counts, even if the attempt is to be stopped at the same moment.
    tokio::select! {
        biased;
        result = &mut *work => return Some(result),
        () = attempt.token().cancelled() => {}
        () = time_limit_reached(run, stop_at) => attempt.interrupt(Interruption::TimedOut),
        () = heartbeat_missed(run, attempt) => attempt.interrupt(Interruption::HeartbeatMissed),
    }
    let grace_over = clock.steady().saturating_add(run.inner.settings.grace);
    tokio::select! {
        biased;
        result = work => Some(result),
        () = timer::reached(clock, grace_over) => {
            let (task, kind) = (attempt.id().0, attempt.task.kind.as_str());
            tracing::warn!(task, kind, "the handler did not stop within its grace period and is aborted");
            None
        }
    }
}

/// Returns the steady time at which the attempt's time is over.
fn stop_at(time_limit: TimeLimit, started: Duration) -> Option<Duration> {
    match time_limit {
        TimeLimit::Unlimited => None,
        TimeLimit::Timeout(limit) | TimeLimit::Deadline(limit) => Some(started.saturating_add(limit)),
        TimeLimit::Expired => Some(started),
    }
}

async fn time_limit_reached(run: &Run, stop_at: Option<Duration>) {
    match stop_at {
        Some(at) => timer::reached(&*run.inner.clock, at).await,
        None => std::future::pending().await,
    }
}

/// Completes when the handler has missed its heartbeat timeout.
async fn heartbeat_missed(run: &Run, attempt: &Attempt) {
    let clock = &*run.inner.clock;
    while let Some(at) = attempt.heartbeat.silent_at() {
        if clock.steady() >= at {
            return;
        }
        // Heartbeats during this wait move the time, so it is read again.
        timer::reached(clock, at).await;
    }
    std::future::pending().await
}

fn end_of_attempt(
    run: &Arc<Run>,
    handler: &Handler,
    attempt: &Arc<Attempt>,
    time_limit: TimeLimit,
    result: HandlerResult,
) -> AttemptEnd {
    if attempt.is_finished() {
        return AttemptEnd::Finished;
    }
    let result = result.map(|result| result.map(|output| Output(output.0.or_else(|| attempt.result.bytes()))));
    let settings = &run.inner.settings;
    let policies = RetryPolicies {
        task: attempt.task.retry,
        kind: handler.options.retry,
        queue: settings.queue_retry.get(&attempt.task.queue).copied(),
        engine: settings.retry,
    };
    decide_end(
        result,
        EndConditions {
            interruption: attempt.interruption(),
            timeout_text: &|| timeout_text(attempt, time_limit),
            attempt: attempt.task.attempt,
            policy: policies.most_specific(),
            // A kept task would start without credit.
            may_hold: !settings.on_credit,
            review: &|failure, next| limit_by_deadline(run, attempt, review(run, handler, attempt, failure, next)),
        },
    )
}

/// Applies the handler's failure policy to the decision of the retry policy.
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

/// Ends the task with its last error if the next attempt could not start before the deadline.
fn limit_by_deadline(run: &Run, attempt: &Attempt, next: AfterFailure) -> AfterFailure {
    match (next, attempt.task.deadline) {
        (AfterFailure::Retry { after, .. }, Some(deadline)) if run.inner.clock.now().plus(after) >= deadline => {
            AfterFailure::Fail
        }
        _ => next,
    }
}

fn timeout_text(attempt: &Attempt, time_limit: TimeLimit) -> String {
    if let (Some(Interruption::HeartbeatMissed), Some(limit)) = (attempt.interruption(), attempt.heartbeat.limit()) {
        return format!("no heartbeat for {limit:?}");
    }
    match time_limit {
        TimeLimit::Timeout(limit) => format!("timed out after {limit:?}"),
        TimeLimit::Deadline(_) | TimeLimit::Expired => "the deadline passed while it ran".to_owned(),
        TimeLimit::Unlimited => "timed out".to_owned(),
    }
}

/// Returns a panic as a retryable failure.
fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    let text = Failure::of_panic(&*panic);
    Failure::retryable(text.message().replacen("it", "the handler", 1))
}
