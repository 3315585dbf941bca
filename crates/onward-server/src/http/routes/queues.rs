//! `/v1/queues`.

use axum::http::Method;
use onward_store::{Name, Scope, StoreReads as _, TaskFilter, TaskState, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::wire::{Page, QueueBody, QueueChange, Reply, json, parse_states};

pub(super) fn table() -> Vec<Route> {
    let (viewer, operator) = (Access::Needs(Role::Viewer), Access::Needs(Role::Operator));
    vec![
        route(Method::GET, "/v1/queues", viewer, "Lists the queues.", list)
            .returns_page::<QueueBody>("All queues, by name."),
        route(Method::GET, "/v1/queues/{queue}", viewer, "Returns a queue.", show)
            .returns::<QueueBody>(200, "The queue."),
        route(Method::PATCH, "/v1/queues/{queue}", operator, "Changes a queue, or creates it.", change)
            .takes::<QueueChange>()
            .returns::<QueueBody>(200, "The queue."),
        route(Method::POST, "/v1/queues/{queue}/pause", operator, "Stops claims of the tasks of a queue.", pause)
            .takes::<PauseBody>()
            .returns::<QueueBody>(200, "The queue."),
        route(Method::POST, "/v1/queues/{queue}/resume", operator, "Ends the pause of a queue.", resume)
            .returns::<QueueBody>(200, "The queue."),
        route(Method::POST, "/v1/queues/{queue}/purge", operator, "Removes tasks of a queue for good.", purge)
            .takes::<PurgeBody>()
            .waits()
            .returns::<PurgedBody>(200, "The number of tasks that were removed, or would be."),
    ]
}

/// A removal of tasks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PurgeBody {
    /// The name of the queue once more, as a confirmation. A dry run needs none.
    confirm: Option<String>,
    /// The states of the tasks, separated by commas; not `running`.
    state: String,
    /// True removes nothing and returns the number of tasks. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// The result of a removal.
#[derive(Debug, Serialize, ToSchema)]
struct PurgedBody {
    /// The number of tasks that were selected before.
    selected: u64,
    /// The number of tasks that were removed.
    removed: u64,
}

/// A pause.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PauseBody {
    /// The time at which the pause ends by itself. Default: it has to be resumed.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
}

async fn list(call: Call) -> Reply {
    let items = call.server.store.queues().await?.into_iter().map(QueueBody::from).collect();
    json(&Page { items, next: None })
}

async fn show(call: Call) -> Reply {
    let name = call.name("queue")?;
    json(&QueueBody::from(call.server.engine.queue(&name).await?))
}

/// Returns the name of a queue that is not reserved for Onward.
fn own_queue(call: &Call) -> Result<Name, Problem> {
    let name = call.name("queue")?;
    name.check_own("queue").map_err(|error| Problem::from(error).field("queue"))?;
    Ok(name)
}

async fn change(call: Call) -> Reply {
    let change: QueueChange = call.json()?;
    call.server.engine.set_queue(change.of(own_queue(&call)?)).await?;
    show(call).await
}

async fn pause(call: Call) -> Reply {
    let PauseBody { until } = call.json()?;
    let scope = Scope::Queue(own_queue(&call)?);
    match until {
        Some(until) => call.server.engine.pause_until(scope, until).await?,
        None => call.server.engine.pause(scope).await?,
    }
    show(call).await
}

async fn resume(call: Call) -> Reply {
    call.server.engine.resume(Scope::Queue(own_queue(&call)?)).await?;
    show(call).await
}

async fn purge(call: Call) -> Reply {
    let PurgeBody { confirm, state, dry_run } = call.json()?;
    let states = parse_states(&state)?;
    if states.contains(&TaskState::Running) {
        let detail = "running tasks are not removed";
        return Err(Problem::invalid("state", detail, "cancel them, and purge them as cancelled"));
    }
    let queue = own_queue(&call)?;
    let engine = &call.server.engine;
    // A queue that does not exist is an error, and not empty.
    engine.queue(&queue).await?;
    let filter = TaskFilter { queue: Some(queue.clone()), states: states.clone(), ..TaskFilter::default() };
    let selected = engine.count(filter).await?;
    if dry_run {
        return json(&PurgedBody { selected, removed: 0 });
    }
    if confirm.as_deref() != Some(queue.as_str()) {
        let detail = format!("`confirm` does not name the queue, and {selected} tasks would be gone for good");
        return Err(Problem::new(Code::Conflict, detail, format!("send `\"confirm\": \"{queue}\"`")).field("confirm"));
    }
    json(&PurgedBody { selected, removed: engine.purge(&queue, &states).await? })
}
