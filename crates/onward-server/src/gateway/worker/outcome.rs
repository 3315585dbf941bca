//! The outcomes of a worker as results of the engine's handler.

use std::time::Duration;

use bytes::Bytes;
use onward::handlers::Interruption;
use onward::{Context, Error, Failure, Name, NewTask, Output};
use onward_protocol::worker::{End, OnFailure, Outcome, Progress};

use super::event::AttemptResult;
use super::new_task::new_task;
use crate::gateway::session::EngineEnd;

/// The delay before a failed attempt that does not count is retried, if the worker sets none.
const UNCOUNTED_DELAY: Duration = Duration::from_secs(1);

/// Returns the result of an attempt, after its last progress and its children are noted.
///
/// # Errors
/// Returns a refusal of a value that the store would reject. Nothing has changed then.
pub(super) fn result(context: &Context, end: EngineEnd, payload_limit: usize) -> Result<AttemptResult, Error> {
    match end {
        EngineEnd::Worker(end, payloads) => of_worker(context, &end, &payloads, payload_limit),
        // A stopping gateway ends its workers, which is no fault of their tasks.
        EngineEnd::Crashed(_) if context.interruption() == Some(Interruption::ShuttingDown) => {
            Ok(Err(Failure::released()))
        }
        EngineEnd::Crashed(why) => Ok(Err(Failure::crashed(format!("the worker was lost: {why}")))),
        EngineEnd::Released => Ok(Err(Failure::released())),
    }
}

fn of_worker(context: &Context, end: &End, payloads: &[Bytes], payload_limit: usize) -> Result<AttemptResult, Error> {
    let spawn = end.spawn.iter().flatten();
    let children = spawn.map(|new| checked(new_task(new, payloads)?, payload_limit));
    let children = children.collect::<Result<Vec<NewTask>, Error>>()?;
    let payload = |index: Option<usize>| index.and_then(|index| payloads.get(index)).cloned().unwrap_or_default();
    let result = match end.outcome {
        Outcome::Ok => Ok(Output::from(payload(end.payload))),
        Outcome::Fail => Err(failure(end)),
        Outcome::Release => Err(Failure::released()),
        Outcome::Later => Err(match end.within_ms {
            Some(within) => Failure::await_completion_within(Duration::from_millis(within)),
            None => Failure::await_completion(),
        }),
        Outcome::Children if end.on_failure == Some(OnFailure::Fail) => {
            Err(Failure::await_children_or_fail(payload(end.checkpoint)))
        }
        Outcome::Children => Err(Failure::await_children(payload(end.checkpoint))),
        // A wrong name is refused here, because the store would fail the task for it.
        Outcome::Move => Err(Failure::move_to(Name::new(end.queue.as_deref().unwrap_or_default())?.as_str())),
        Outcome::Cancelled => Err(cancelled(context)),
        Outcome::Turn => {
            Err(Failure::permanent("the worker ended the task as the turn of an orchestration, which it is not"))
        }
    };
    if let Some(progress) = &end.progress {
        note_progress(context, progress);
    }
    children.into_iter().for_each(|child| context.spawn_task(child));
    Ok(result)
}

fn checked(task: NewTask, payload_limit: usize) -> Result<NewTask, Error> {
    task.check(payload_limit)?;
    Ok(task)
}

/// Returns the text of a failure, as the store keeps it.
pub(super) fn failure_text(end: &End) -> String {
    match (end.class.as_deref().unwrap_or_default(), end.message.as_deref().unwrap_or_default()) {
        ("", "") => "the worker gave no reason".to_owned(),
        ("", message) => message.to_owned(),
        (class, "") => class.to_owned(),
        (class, message) => format!("{class}: {message}"),
    }
}

fn failure(end: &End) -> Failure {
    let message = failure_text(end);
    let after = end.retry_after_ms.map(Duration::from_millis);
    let failure = match (end.retry.unwrap_or(true), end.counts.unwrap_or(true), after) {
        (false, _, _) => Failure::permanent(message),
        (true, false, after) => Failure::not_counted(message, after.unwrap_or(UNCOUNTED_DELAY)),
        (true, true, Some(after)) => Failure::retry_after(message, after),
        (true, true, None) => Failure::retryable(message),
    };
    match &end.details {
        Some(details) => failure.with_details(details),
        None => failure,
    }
}

/// Returns the failure of a handler that stopped. Without a request to stop it is a failure as any
/// other.
fn cancelled(context: &Context) -> Failure {
    match context.interruption() {
        Some(_) => Failure::retryable("the handler stopped as it was asked to"),
        None => Failure::retryable("the handler ended as cancelled without a request to stop"),
    }
}

/// Notes the progress of an attempt.
pub(super) fn note_progress(context: &Context, progress: &Progress) {
    if let Some(done) = progress.done {
        context.progress_bytes(done, progress.total);
    }
    match (progress.fraction, &progress.message) {
        (Some(fraction), Some(message)) => context.progress_message(fraction, message.clone()),
        (Some(fraction), None) => context.progress(fraction),
        (None, Some(message)) => context.progress_message(f32::NAN, message.clone()),
        (None, None) => {}
    }
}
