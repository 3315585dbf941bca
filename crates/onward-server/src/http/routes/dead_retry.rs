//! `POST /v1/dead/{cause}/retry`: retries of all tasks of a cause, at a rate.

use std::time::Duration;

use axum::http::Method;
use onward::bounds as engine_bounds;
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::dead::{DeadSummaryBody, unknown};
use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::bounds;
use crate::http::problem::Problem;
use crate::http::request::Call;
use crate::http::wire::{RateBody, Reply, json};

pub(super) fn table() -> Vec<Route> {
    let operator = Access::Needs(Role::Operator);
    vec![
        route(Method::POST, "/v1/dead/{cause}/retry", operator, "Retries the tasks of a cause, at a rate.", retry)
            .takes::<RetryDeadBody>()
            .waits()
            .returns::<DeadSummaryBody>(200, "The tasks that wait again. `left` is above 0 if the time was up."),
    ]
}

/// A retry of dead letters, the newest first.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RetryDeadBody {
    /// The rate of the retries; its `burst` has no effect and is refused. With a rate a request
    /// works for at most a minute: repeat it while `left` is above 0. Closing the connection ends
    /// it. Default: all at once.
    rate: Option<RateBody>,
    /// The largest number of tasks, 1 to 10000. Default: all.
    limit: Option<usize>,
}

async fn retry(call: Call) -> Reply {
    let RetryDeadBody { rate, limit } = call.json()?;
    let most = engine_bounds::DEAD_LETTERS;
    let limit = limit.unwrap_or(most);
    if !(1..=most).contains(&limit) {
        let detail = format!("the limit is {limit} and may be 1 to {most}");
        return Err(Problem::invalid("limit", detail, "repeat the request for more tasks"));
    }
    let pace = rate.map(Pace::new).transpose()?;
    let tasks = call.server.engine.dead_letters(call.parameter("cause"), limit).await?;
    if tasks.is_empty() {
        return Err(unknown(&call));
    }
    let mut summary = DeadSummaryBody { changed: 0, skipped: 0, left: tasks.len() as u64 };
    let pieces = tasks.chunks(pace.as_ref().map_or(engine_bounds::DEAD_LETTER_BATCH, |pace| pace.tasks));
    let started = Instant::now();
    for (number, piece) in pieces.enumerate() {
        if let Some(pace) = &pace
            && !pace.wait(&call, started, number).await
        {
            break;
        }
        let done = call.server.engine.retry_dead(piece).await?;
        summary.changed += done.tasks;
        summary.skipped += done.skipped;
        summary.left -= piece.len() as u64;
    }
    json(&summary)
}

/// The pace of retries: pieces of tasks, and the time between two pieces.
#[derive(Debug)]
struct Pace {
    tasks: usize,
    interval: Duration,
}

impl Pace {
    /// The number of pieces that one second has at most: more tasks share a piece.
    const PIECES_A_SECOND: u32 = 20;

    fn new(rate: RateBody) -> Result<Self, Problem> {
        let (tasks, per) = rate.checked()?;
        let one = per / tasks;
        let shortest = Duration::from_secs(1) / Self::PIECES_A_SECOND;
        // A piece has the tasks of its interval, so that the rate holds.
        let together = shortest.as_nanos() / one.as_nanos().max(1);
        let together = u32::try_from(together).unwrap_or(u32::MAX).clamp(1, tasks);
        let most = u32::try_from(engine_bounds::DEAD_LETTER_BATCH).unwrap_or(u32::MAX);
        let together = together.min(most);
        Ok(Self { tasks: together as usize, interval: per * together / tasks })
    }

    /// Waits until a piece is due. Returns false if that is beyond the time of the request, or the
    /// server stops before.
    async fn wait(&self, call: &Call, started: Instant, number: usize) -> bool {
        let after = u32::try_from(number).ok().and_then(|number| self.interval.checked_mul(number));
        let Some(after) = after.filter(|after| *after <= bounds::WAIT) else { return false };
        tokio::select! {
            biased;
            () = call.server.stopping.cancelled() => false,
            () = tokio::time::sleep_until(started + after) => true,
        }
    }
}
