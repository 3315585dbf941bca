//! `/v1/groups`.

use std::collections::BTreeMap;

use axum::http::Method;
use onward_store::{Limit, LimitScope, Name, Scope, StoreReads as _, TaskFilter, TaskState, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::problem::Problem;
use crate::http::request::Call;
use crate::http::wire::{LimitBody, LimitPatch, Page, Reply, json};

pub(super) fn table() -> Vec<Route> {
    let (viewer, operator) = (Access::Needs(Role::Viewer), Access::Needs(Role::Operator));
    let post = Method::POST;
    vec![
        route(Method::GET, "/v1/groups", viewer, "Lists the groups that have a limit or a pause.", list)
            .returns_page::<GroupBody>("The groups, by name. A group without settings is not listed."),
        route(Method::GET, "/v1/groups/{group}", viewer, "Returns a group and the number of its tasks.", show)
            .returns::<GroupTasksBody>(200, "The group; one that no task has yet has no tasks."),
        route(Method::PATCH, "/v1/groups/{group}", operator, "Changes the limit of a group.", change)
            .takes::<LimitPatch>()
            .returns::<GroupBody>(200, "The group."),
        route(post.clone(), "/v1/groups/{group}/pause", operator, "Stops claims of the tasks of a group.", pause)
            .takes::<PauseGroupBody>()
            .returns::<GroupBody>(200, "The group."),
        route(post, "/v1/groups/{group}/resume", operator, "Ends the pause of a group.", resume)
            .returns::<GroupBody>(200, "The group."),
    ]
}

/// A group.
#[derive(Debug, Serialize, ToSchema)]
struct GroupBody {
    /// The name.
    name: String,
    /// True if the group is paused.
    paused: bool,
    /// The limit of the group itself; null if it has none. A limit on a prefix of its name is in
    /// `/v1/limits`.
    limit: Option<LimitBody>,
}

/// A group and the number of its tasks.
#[derive(Debug, Serialize, ToSchema)]
struct GroupTasksBody {
    /// The group.
    group: GroupBody,
    /// The number of blocked tasks.
    blocked: u64,
    /// The number of tasks that are not due yet.
    scheduled: u64,
    /// The number of waiting tasks.
    waiting: u64,
    /// The number of running tasks.
    running: u64,
    /// The number of dead letters.
    dead: u64,
}

/// A pause.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PauseGroupBody {
    /// The time at which the pause ends by itself. Default: it has to be resumed.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
}

/// Returns the groups with a limit or a pause, by name.
async fn groups(call: &Call) -> Result<BTreeMap<Name, GroupBody>, Problem> {
    let mut groups = BTreeMap::new();
    for record in call.server.store.limits().await? {
        if let LimitScope::Group(name) = &record.scope {
            let body = GroupBody { name: name.to_string(), paused: false, limit: None };
            groups.insert(name.clone(), GroupBody { limit: Some(record.into()), ..body });
        }
    }
    for pause in call.server.store.pauses().await? {
        if let Scope::Group(name) = pause.scope {
            let body = || GroupBody { name: name.to_string(), paused: true, limit: None };
            groups.entry(name.clone()).or_insert_with(body).paused = true;
        }
    }
    Ok(groups)
}

async fn list(call: Call) -> Reply {
    json(&Page { items: groups(&call).await?.into_values().collect(), next: None })
}

async fn group(call: &Call) -> Result<GroupBody, Problem> {
    let name = call.name("group")?;
    let found = groups(call).await?.remove(&name);
    Ok(found.unwrap_or_else(|| GroupBody { name: name.to_string(), paused: false, limit: None }))
}

async fn show(call: Call) -> Reply {
    let name = call.name("group")?;
    let count = async |state| {
        let filter = TaskFilter { group: Some(name.clone()), states: vec![state], ..TaskFilter::default() };
        call.server.store.count(filter).await
    };
    json(&GroupTasksBody {
        group: group(&call).await?,
        blocked: count(TaskState::Blocked).await?,
        scheduled: count(TaskState::Scheduled).await?,
        waiting: count(TaskState::Waiting).await?,
        running: count(TaskState::Running).await?,
        dead: count(TaskState::Dead).await?,
    })
}

async fn change(call: Call) -> Reply {
    let patch: LimitPatch = call.json()?;
    let name = call.name("group")?;
    let _: Limit = call.server.engine.set_limit(patch.of(LimitScope::Group(name))).await?;
    json(&group(&call).await?)
}

async fn pause(call: Call) -> Reply {
    let PauseGroupBody { until } = call.json()?;
    let scope = Scope::Group(call.name("group")?);
    match until {
        Some(until) => call.server.engine.pause_until(scope, until).await?,
        None => call.server.engine.pause(scope).await?,
    }
    json(&group(&call).await?)
}

async fn resume(call: Call) -> Reply {
    call.server.engine.resume(Scope::Group(call.name("group")?)).await?;
    json(&group(&call).await?)
}
