//! Actions on all tasks that a filter selects.

use axum::http::Method;
use onward::control::BulkSummary;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::wire::{Reply, TaskFilterQuery, json};

/// The number of tasks above which the caller has to confirm the number.
const CONFIRMED_ABOVE: u64 = 1000;

pub(super) fn table() -> Vec<Route> {
    let operator = Access::Needs(Role::Operator);
    let bulk = |path, summary, verb: Verb| {
        route(Method::POST, path, operator, summary, move |call| act(call, verb))
            .takes::<BulkBody>()
            .waits()
            .returns::<BulkSummaryBody>(200, "The number of tasks that were changed, or would be.")
    };
    vec![
        bulk("/v1/tasks:cancel", "Cancels the tasks that a filter selects.", Verb::Cancel),
        bulk("/v1/tasks:retry", "Retries the ended tasks that a filter selects.", Verb::Retry),
        bulk("/v1/tasks:delete", "Removes the tasks that a filter selects.", Verb::Delete),
    ]
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Cancel,
    Retry,
    Delete,
}

/// A filter, and the confirmation of the number of tasks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BulkBody {
    /// The tasks. `payloads`, `cursor` and `limit` are not taken here.
    filter: TaskFilterQuery,
    /// True changes nothing and returns the number of tasks that the filter selects. Default:
    /// false.
    #[serde(default)]
    dry_run: bool,
    /// The number that a dry run returned. It is needed if the filter selects more than 1000 tasks.
    confirm: Option<u64>,
}

/// The result of an action on many tasks.
#[derive(Debug, Default, Serialize, ToSchema)]
struct BulkSummaryBody {
    /// The number of tasks that the filter selected before.
    selected: u64,
    /// The number of tasks that were changed.
    changed: u64,
    /// The number of running ones among them that were asked to stop.
    cancel_requested: u64,
    /// The number of tasks that could not be changed.
    skipped: u64,
}

async fn act(call: Call, verb: Verb) -> Reply {
    let BulkBody { filter, dry_run, confirm } = call.json()?;
    if filter.payloads.is_some() || filter.cursor.is_some() || filter.limit.is_some() {
        let detail = "`payloads`, `cursor` and `limit` have no effect on an action";
        return Err(Problem::invalid("filter", detail, "leave them out"));
    }
    let filter = filter.filter()?;
    let engine = &call.server.engine;
    let selected = engine.count(filter.clone()).await?;
    if dry_run {
        return json(&BulkSummaryBody { selected, ..BulkSummaryBody::default() });
    }
    if selected > CONFIRMED_ABOVE && confirm != Some(selected) {
        let detail = format!("the filter selects {selected} tasks, and `confirm` is not this number");
        let remedy = format!("look at them, and send `\"confirm\": {selected}`");
        return Err(Problem::new(Code::Conflict, detail, remedy).field("confirm"));
    }
    let summary: BulkSummary = match verb {
        Verb::Cancel => engine.cancel_all(filter).await?,
        Verb::Retry => engine.retry_all(filter).await?,
        Verb::Delete => engine.delete_all(filter).await?,
    };
    let BulkSummary { tasks, cancel_requested, skipped, .. } = summary;
    json(&BulkSummaryBody { selected, changed: tasks, cancel_requested, skipped })
}
