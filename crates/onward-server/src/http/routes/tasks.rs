//! Reading tasks.

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, header};
use bytes::Bytes;
use onward_store::{
    Page as StorePage, Refusal, Store, StoreReads as _, TaskFilter, TaskId, TaskPage, TaskRecord, TaskState, WaitReason,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::route::{Access, Route, route};
use super::submit::wait_for_end;
use crate::http::access::Role;
use crate::http::bounds;
use crate::http::problem::{Code, Problem};
use crate::http::request::{Call, decode_cursor, encode_cursor};
use crate::http::wire::{AttemptBody, Page, Reply, TaskBody, TaskFilterQuery, check_limit, json, no_content};

pub(super) fn table() -> Vec<Route> {
    let (viewer, operator) = (Access::Needs(Role::Viewer), Access::Needs(Role::Operator));
    vec![
        route(Method::GET, "/v1/tasks", viewer, "Lists tasks, the newest first.", list)
            .query::<TaskFilterQuery>()
            .returns_page::<TaskBody>("A page of tasks."),
        route(Method::GET, "/v1/tasks/{id}", viewer, "Returns a task.", show)
            .query::<ShowQuery>()
            .prefers_wait()
            .returns::<TaskBody>(200, "The task, which has not ended if the time to wait is up."),
        route(Method::GET, "/v1/tasks/{id}/payload", operator, "Returns the payload of a task, as it is.", payload)
            .returns_other("application/octet-stream", "The payload; JSON has the type `application/json`."),
        route(Method::GET, "/v1/tasks/{id}/result", operator, "Returns the result of a task, as it is.", result)
            .returns_other("application/octet-stream", "The result; JSON has the type `application/json`.")
            .returns_nothing("The task has completed without a result."),
        route(Method::GET, "/v1/tasks/{id}/attempts", viewer, "Lists the failed attempts of a task.", attempts)
            .returns_page::<AttemptBody>("The errors, the oldest first."),
        route(Method::GET, "/v1/tasks/{id}/why", viewer, "Returns why a task does not run.", why)
            .returns::<WhyBody>(200, "Every reason that holds now; none if nothing holds the task back."),
    ]
}

/// The parts of a task.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ShowQuery {
    /// True returns payload and result as well, which needs the role operator. Default: false.
    payloads: Option<bool>,
}

/// The reasons for which a task waits.
#[derive(Debug, Serialize, ToSchema)]
struct WhyBody {
    /// The state of the task.
    state: &'static str,
    /// The reasons.
    reasons: Vec<ReasonBody>,
}

/// A reason for which a task waits.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReasonBody {
    /// The name of the reason, for programs.
    reason: String,
    /// The reason, for people.
    text: String,
}

impl From<&WaitReason> for ReasonBody {
    fn from(reason: &WaitReason) -> Self {
        let written = serde_json::to_value(reason).unwrap_or_default();
        let name = written.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { reason: name, text: reason.to_string() }
    }
}

async fn list(call: Call) -> Reply {
    let query: TaskFilterQuery = call.query()?;
    if query.payloads == Some(true) {
        call.needs_payloads()?;
    }
    let before = query.cursor.as_deref().map(decode_cursor::<TaskId>).transpose()?;
    let page = StorePage { before, limit: check_limit(query.limit)? };
    let with_payload = query.payloads == Some(true);
    let page = match with_payload {
        true => page_with_payloads(&*call.server.store, query.filter()?, page).await?,
        false => call.server.store.tasks(query.filter()?, page).await?,
    };
    let items = page.tasks.into_iter().map(|task| TaskBody::new(task, with_payload)).collect();
    json(&Page { items, next: page.next.map(|next| encode_cursor(&next)) })
}

/// Reads a page of tasks with payloads, which ends early after [`bounds::PAGE_BYTES`] of them.
async fn page_with_payloads(store: &dyn Store, filter: TaskFilter, page: StorePage) -> Result<TaskPage, Problem> {
    let size =
        |task: &TaskRecord| task.payload.as_ref().map_or(0, Bytes::len) + task.result.bytes().map_or(0, Bytes::len);
    let (mut tasks, mut before, mut bytes, mut count) = (Vec::new(), page.before, 0, 1);
    loop {
        let limit = count.min(page.limit - tasks.len());
        let part = store.tasks(filter.clone(), StorePage { before, limit }).await?;
        bytes += part.tasks.iter().map(size).sum::<usize>();
        let largest = part.tasks.iter().map(size).max().unwrap_or_default().max(1);
        tasks.extend(part.tasks);
        before = part.next;
        if before.is_none() || tasks.len() >= page.limit || bytes >= bounds::PAGE_BYTES {
            return Ok(TaskPage { tasks, next: before });
        }
        // The next tasks are probably no larger than these.
        count = ((bounds::PAGE_BYTES - bytes) / largest).clamp(1, bounds::PAGE);
    }
}

async fn show(call: Call) -> Reply {
    let query: ShowQuery = call.query()?;
    let with_payload = query.payloads == Some(true);
    if with_payload {
        call.needs_payloads()?;
    }
    let wait = call.wait()?;
    let mut found = record(&call).await?;
    if let Some(wait) = wait.filter(|_| !found.state.is_ended()) {
        found = match wait_for_end(&call, found.id, wait).await? {
            Some(ended) => ended,
            None => record(&call).await?,
        };
    }
    json(&TaskBody::new(found, with_payload))
}

/// Returns the record of the task in the path.
pub(super) async fn record(call: &Call) -> Result<TaskRecord, Problem> {
    let id = call.task()?;
    let record = call.server.store.task(id).await?;
    record.ok_or_else(|| Problem::from(&Refusal::TaskNotFound(id)))
}

/// Returns an ended task, with its result if the actor may read it.
pub(super) fn ended_body(call: &Call, record: TaskRecord) -> TaskBody {
    TaskBody::new(record, call.reads_payloads())
}

async fn payload(call: Call) -> Reply {
    Ok(content(record(&call).await?.payload.unwrap_or_default()))
}

async fn result(call: Call) -> Reply {
    let task = record(&call).await?;
    let (id, state) = (task.id, task.state);
    let error = task.errors.last().map(|error| format!(": {}", error.message)).unwrap_or_default();
    match task.result.into_bytes() {
        Some(result) => Ok(content(result)),
        None if state == TaskState::Completed => no_content(),
        None if !state.is_ended() => {
            let detail = format!("task {id} is {} and has no result yet", state.as_str());
            Err(Problem::new(Code::NotEnded, detail, "follow its events, or submit with `Prefer: wait=30s`"))
        }
        None if state == TaskState::Cancelled => {
            let detail = format!("task {id} was cancelled{error}");
            Err(Problem::new(Code::TaskCancelled, detail, "retry it if it is to run"))
        }
        None => {
            let detail = format!("task {id} is {}{error}", state.as_str());
            Err(Problem::new(Code::TaskFailed, detail, "mend the cause, and retry it"))
        }
    }
}

/// Returns bytes as a response. They are never shown as a page: a payload may be anything.
fn content(bytes: Bytes) -> Response<Body> {
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok();
    let content_type = if is_json { "application/json" } else { "application/octet-stream" };
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    response
}

async fn attempts(call: Call) -> Reply {
    let items = record(&call).await?.errors.into_iter().map(AttemptBody::from).collect();
    json(&Page { items, next: None })
}

async fn why(call: Call) -> Reply {
    let record = record(&call).await?;
    let reasons = call.server.store.why(record.id).await?.unwrap_or_default();
    let reasons = reasons.iter().map(ReasonBody::from);
    json(&WhyBody { state: record.state.as_str(), reasons: reasons.collect() })
}
