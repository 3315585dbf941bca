//! `/v1/dead`: dead letters, grouped by their cause.

use axum::http::Method;
use onward::bounds as engine_bounds;
use onward::control::{DeadCause, DeadCauses};
use onward_store::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::dead_retry;
use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::wire::{Reply, json};

/// The number of tasks above which the caller has to confirm the number.
const CONFIRMED_ABOVE: usize = 1000;

/// The number of ids that the description of one cause has.
const IDS: usize = 100;

pub(super) fn table() -> Vec<Route> {
    let (viewer, operator) = (Access::Needs(Role::Viewer), Access::Needs(Role::Operator));
    let own = vec![
        route(Method::GET, "/v1/dead", viewer, "Lists the causes of dead letters.", list)
            .returns::<DeadBody>(200, "The causes, the one with most tasks first."),
        route(Method::GET, "/v1/dead/{cause}", viewer, "Returns a cause and its newest tasks.", show)
            .returns::<CauseTasksBody>(200, "The cause."),
        route(Method::POST, "/v1/dead/{cause}/canary", operator, "Retries the newest task of a cause.", canary)
            .returns::<CanaryBody>(200, "The task that waits again."),
        route(Method::POST, "/v1/dead/{cause}/discard", operator, "Removes the tasks of a cause.", discard)
            .takes::<DiscardBody>()
            .waits()
            .returns::<DeadSummaryBody>(200, "The number of tasks that were removed, or would be."),
    ];
    own.into_iter().chain(dead_retry::table()).collect()
}

/// The causes of dead letters.
#[derive(Debug, Serialize, ToSchema)]
struct DeadBody {
    /// The causes.
    items: Vec<CauseBody>,
    /// The number of dead letters in them.
    tasks: u64,
    /// True if the store has more than 10000: the oldest ones are in no cause.
    has_more: bool,
}

/// A cause of dead letters: tasks of one kind whose last errors differ at most in numbers.
#[derive(Debug, Serialize, ToSchema)]
struct CauseBody {
    /// The name of the cause, for the paths under `/v1/dead`.
    cause: String,
    /// The kind of the tasks.
    kind: String,
    /// The error, with `#` for what differs from task to task.
    error: String,
    /// The number of tasks.
    tasks: u64,
    /// The queues in which they died.
    queues: Vec<String>,
    /// The time of the first death.
    #[schema(value_type = String, format = DateTime)]
    first_at: Timestamp,
    /// The time of the newest death.
    #[schema(value_type = String, format = DateTime)]
    newest_at: Timestamp,
    /// The id of the newest task.
    sample: String,
    /// The last error of the newest task.
    sample_error: String,
}

impl From<DeadCause> for CauseBody {
    fn from(cause: DeadCause) -> Self {
        Self {
            cause: cause.fingerprint,
            kind: cause.kind.to_string(),
            error: cause.error,
            tasks: cause.tasks,
            queues: cause.queues.iter().map(ToString::to_string).collect(),
            first_at: cause.first_at,
            newest_at: cause.newest_at,
            sample: cause.sample.to_string(),
            sample_error: cause.sample_error,
        }
    }
}

/// A cause and its newest tasks.
#[derive(Debug, Serialize, ToSchema)]
struct CauseTasksBody {
    /// The cause.
    cause: CauseBody,
    /// The ids of the newest tasks, at most 100.
    ids: Vec<String>,
}

/// A task that was retried alone.
#[derive(Debug, Serialize, ToSchema)]
struct CanaryBody {
    /// The id of the task.
    id: String,
}

/// A removal of dead letters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DiscardBody {
    /// True changes nothing and returns the number of tasks. Default: false.
    #[serde(default)]
    dry_run: bool,
    /// The number that a dry run returned. It is needed for more than 1000 tasks.
    confirm: Option<usize>,
}

/// The result of an action on dead letters.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeadSummaryBody {
    /// The number of tasks that were changed.
    pub(super) changed: u64,
    /// The number of tasks that could not be changed, such as those whose key is taken.
    pub(super) skipped: u64,
    /// The number of selected tasks that were not tried.
    pub(super) left: u64,
}

async fn list(call: Call) -> Reply {
    let DeadCauses { causes, tasks, has_more, .. } = call.server.engine.dead_causes().await?;
    json(&DeadBody { items: causes.into_iter().map(CauseBody::from).collect(), tasks, has_more })
}

/// Returns the problem of a cause that has no dead letters.
#[cold]
pub(super) fn unknown(call: &Call) -> Problem {
    Problem::not_found("cause", call.parameter("cause"), "GET /v1/dead lists the causes")
}

async fn show(call: Call) -> Reply {
    let name = call.parameter("cause");
    let causes = call.server.engine.dead_causes().await?.causes;
    let cause = causes.into_iter().find(|cause| cause.fingerprint == name).ok_or_else(|| unknown(&call))?;
    let ids = call.server.engine.dead_letters(name, IDS).await?;
    json(&CauseTasksBody { cause: cause.into(), ids: ids.iter().map(ToString::to_string).collect() })
}

async fn canary(call: Call) -> Reply {
    let engine = &call.server.engine;
    let newest = engine.dead_letters(call.parameter("cause"), 1).await?.pop().ok_or_else(|| unknown(&call))?;
    if engine.retry_dead(&[newest]).await?.tasks == 1 {
        return json(&CanaryBody { id: newest.to_string() });
    }
    let detail = format!("task {newest} was not retried: its key is taken, or it is no dead letter any more");
    Err(Problem::new(Code::Conflict, detail, "look at the task, or retry all tasks of the cause"))
}

async fn discard(call: Call) -> Reply {
    let DiscardBody { dry_run, confirm } = call.json()?;
    let tasks = call.server.engine.dead_letters(call.parameter("cause"), engine_bounds::DEAD_LETTERS).await?;
    let count = tasks.len();
    if count == 0 {
        return Err(unknown(&call));
    }
    if dry_run {
        return json(&DeadSummaryBody { changed: 0, skipped: 0, left: count as u64 });
    }
    if count > CONFIRMED_ABOVE && confirm != Some(count) {
        let detail = format!("the cause has {count} tasks, and `confirm` is not this number");
        return Err(Problem::new(Code::Conflict, detail, format!("send `\"confirm\": {count}`")).field("confirm"));
    }
    let summary = call.server.engine.delete_dead(&tasks).await?;
    json(&DeadSummaryBody { changed: summary.tasks, skipped: summary.skipped, left: 0 })
}
