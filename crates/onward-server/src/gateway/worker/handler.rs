//! The handler of a worker's engine: it passes an attempt to the worker and waits for its end.

use onward::handlers::Interruption;
use onward::{Context, Failure};
use onward_protocol::gateway::StopReason;
use tokio::sync::oneshot;

use super::event::{AttemptResult, Event, Events, attempt_of};
use crate::gateway::session::Input;

/// Runs one attempt in the worker.
pub(super) async fn run(context: Context, events: Events) -> AttemptResult {
    let attempt = attempt_of(&context);
    // The report is requested before the attempt is passed on, because the worker may end it at
    // once.
    let reports = events.clone();
    context.on_end(move |report| {
        // A session that has ended acknowledges nothing.
        let _ = reports.send(Event::Input(Input::Ended(attempt, report.into())));
    });
    let stop = context.cancelled();
    let (end, mut ended) = oneshot::channel();
    if events.send(Event::Started { context: context.clone(), end }).is_err() {
        return Err(Failure::released());
    }
    let result = tokio::select! {
        biased;
        result = &mut ended => result,
        () = stop.cancelled() => {
            let why = context.interruption().map_or(StopReason::Preempted, reason);
            let _ = events.send(Event::Input(Input::Stopping(attempt, why)));
            ended.await
        }
    };
    // The session was dropped with the attempt.
    result.unwrap_or_else(|_| Err(Failure::released()))
}

fn reason(interruption: Interruption) -> StopReason {
    match interruption {
        Interruption::Cancelled => StopReason::Cancelled,
        Interruption::SessionLost => StopReason::Lost,
        Interruption::TimedOut | Interruption::HeartbeatMissed => StopReason::Timeout,
        _ => StopReason::Preempted,
    }
}
