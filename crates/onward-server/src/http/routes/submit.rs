//! `POST /v1/tasks` and `/v1/tasks:batch`.

use std::collections::VecDeque;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use onward_store::bounds::TAGS;
use onward_store::{NewTask, Submitted, TaskId, TaskRecord};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::route::{Access, Route, route};
use super::tasks::ended_body;
use crate::http::access::Role;
use crate::http::bounds;
use crate::http::change::{Idempotency, NotedOutcome, note_outcomes, tagged_tasks};
use crate::http::problem::{Code, Problem};
use crate::http::request::{Call, is_json, read_json};
use crate::http::wire::{NewTaskBody, Reply, TaskBody, created};

pub(super) fn table() -> Vec<Route> {
    let operator = Access::Needs(Role::Operator);
    vec![
        route(Method::POST, "/v1/tasks", operator, "Submits a task.", submit)
            .query::<RawTaskQuery>()
            .takes_json_or_raw::<NewTaskBody>()
            .creates()
            .prefers_wait()
            .without_record()
            .returns::<SubmittedBody>(201, "The task was inserted.")
            .returns::<SubmittedBody>(202, "The task was inserted, and did not end within the time to wait.")
            .returns::<ReplyBody>(200, "The task has ended; or, without `Prefer`, another task has the key."),
        route(Method::POST, "/v1/tasks:batch", operator, "Submits several tasks, all or none.", submit_batch)
            .takes::<BatchBody>()
            .creates()
            .without_record()
            .returns::<BatchSubmittedBody>(201, "The outcome of each task, in the order of the tasks."),
    ]
}

/// The fields of a task whose payload is the body.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct RawTaskQuery {
    /// The kind of a task whose payload is the body, which is then not read as a JSON task.
    kind: Option<String>,
    /// The queue of such a task.
    queue: Option<String>,
    /// The group of such a task.
    group: Option<String>,
    /// The unique key of such a task.
    key: Option<String>,
    /// The priority of such a task.
    priority: Option<u8>,
}

/// Several tasks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BatchBody {
    /// The tasks, at most 10000.
    tasks: Vec<NewTaskBody>,
}

/// The outcomes of several submits.
#[derive(Debug, Serialize, ToSchema)]
struct BatchSubmittedBody {
    /// The outcomes, in the order of the tasks.
    tasks: Vec<SubmittedBody>,
}

/// The outcome of a submit.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SubmittedBody {
    /// The id of the new task, or of the task that has the key.
    pub(super) id: String,
    /// The outcome: `inserted`, `duplicate`, `priority_raised`, `requeued`, `superseded` or
    /// `rejected`.
    pub(super) outcome: &'static str,
}

/// The response to a submit or a start with status 200.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum ReplyBody {
    /// The task, which has ended, if the request waited for it.
    Ended(Box<TaskBody>),
    /// The task that has the key.
    Existing(SubmittedBody),
}

impl From<Submitted> for SubmittedBody {
    fn from(submitted: Submitted) -> Self {
        Self { id: submitted.id().to_string(), outcome: submitted.as_str() }
    }
}

async fn submit(call: Call) -> Reply {
    let wait = call.wait()?;
    let body = task_of(&call)?;
    let raw = (!is_task(&call)?).then(|| call.body.clone());
    let (kind, key) = (body.kind.clone(), body.key.clone());
    let new = body.into_new_task(raw)?;
    let is_full = new.tags.len() >= TAGS;
    let submitted = match &call.repeats {
        None => {
            let submitted = call.server.engine.submit_task(new).await?;
            note_outcomes(&*call.server.store, noted(0, submitted, is_full).into_iter().collect()).await;
            submitted
        }
        Some(request) => {
            let tasks = tagged_tasks(&*call.server.store, request.digest()).await?;
            first_result(&call, request, 0, &mut tasks.into(), (&kind, key)).await?
        }
    };
    respond(&call, submitted, wait).await
}

/// Returns the outcome to record for a repeat of the request, if the tagged task does not show it.
fn noted(index: usize, submitted: Submitted, is_full: bool) -> Option<NotedOutcome> {
    let is_shown = match submitted {
        Submitted::Inserted { .. } => !is_full,
        Submitted::Duplicate { .. } => true,
        _ => false,
    };
    let SubmittedBody { outcome, .. } = submitted.into();
    (!is_shown).then(|| NotedOutcome { index, id: submitted.id(), outcome: outcome.to_owned() })
}

/// Returns true if the body is a task in JSON, and false if it is a payload.
fn is_task(call: &Call) -> Result<bool, Problem> {
    Ok(call.query::<RawTaskQuery>()?.kind.is_none())
}

fn task_of(call: &Call) -> Result<NewTaskBody, Problem> {
    let query: RawTaskQuery = call.query()?;
    let Some(kind) = query.kind else {
        let others = [
            ("queue", query.queue.is_some()),
            ("group", query.group.is_some()),
            ("key", query.key.is_some()),
            ("priority", query.priority.is_some()),
        ];
        if let Some((name, _)) = others.into_iter().find(|(_, is_set)| *is_set) {
            let detail = format!("`{name}` in the query belongs to a payload as the body, and `kind` is missing there");
            return Err(Problem::invalid(name, detail, "put both in the query, or both in the body"));
        }
        if !is_json(&call.headers) {
            let remedy = "send a task as `application/json`, or a payload of any type with `?kind=KIND`";
            return Err(Problem::new(Code::MediaTypeUnknown, "the body is not declared as JSON", remedy));
        }
        return read_json(&call.body);
    };
    let RawTaskQuery { queue, group, key, priority, .. } = query;
    Ok(NewTaskBody::of_query(kind, queue, group, key, priority))
}

/// Returns the response to a submit, which may wait for the end of the task.
pub(super) async fn respond(call: &Call, submitted: Submitted, wait: Option<Duration>) -> Reply {
    let id = submitted.id();
    let location = format!("/v1/tasks/{id}");
    let body = SubmittedBody::from(submitted);
    let Some(wait) = wait else {
        return match submitted.is_new() {
            true => created(StatusCode::CREATED, &location, &body),
            false => created(StatusCode::OK, &location, &ReplyBody::Existing(body)),
        };
    };
    match wait_for_end(call, id, wait).await? {
        Some(record) => created(StatusCode::OK, &location, &ReplyBody::Ended(Box::new(ended_body(call, record)))),
        None => created(StatusCode::ACCEPTED, &location, &body),
    }
}

/// Waits for the end of a task. Returns `None` when the time is up or the server stops.
pub(super) async fn wait_for_end(call: &Call, id: TaskId, wait: Duration) -> Result<Option<TaskRecord>, Problem> {
    tokio::select! {
        ended = tokio::time::timeout(wait, call.server.engine.wait(id)) => match ended {
            Ok(record) => Ok(Some(record?)),
            Err(_) => Ok(None),
        },
        () = call.server.stopping.cancelled() => Ok(None),
    }
}

async fn submit_batch(call: Call) -> Reply {
    let BatchBody { tasks } = call.json()?;
    if !(1..=bounds::BATCH).contains(&tasks.len()) {
        let detail = format!("the batch has {} tasks and may have 1 to {}", tasks.len(), bounds::BATCH);
        return Err(Problem::invalid("tasks", detail, "send several batches"));
    }
    let named: Vec<_> = tasks.iter().map(|task| (task.kind.clone(), task.key.clone())).collect();
    let numbered = tasks.into_iter().enumerate();
    let new = numbered.map(|(index, task)| task.into_new_task(None).map_err(|problem| problem.within("tasks", index)));
    let new = new.collect::<Result<Vec<_>, _>>()?;
    let submitted = match &call.repeats {
        None => submit_new(&call, new).await?,
        Some(request) => {
            let mut tasks = tagged_tasks(&*call.server.store, request.digest()).await?.into();
            let mut results = Vec::with_capacity(named.len());
            for (index, (kind, key)) in named.into_iter().enumerate() {
                results.push(first_result(&call, request, index, &mut tasks, (&kind, key)).await?);
            }
            results
        }
    };
    let body = BatchSubmittedBody { tasks: submitted.into_iter().map(Into::into).collect() };
    created(StatusCode::CREATED, "/v1/tasks", &body)
}

async fn submit_new(call: &Call, new: Vec<NewTask>) -> Result<Vec<Submitted>, Problem> {
    let full: Vec<bool> = new.iter().map(|task| task.tags.len() >= TAGS).collect();
    let submitted = call.server.engine.submit_all(new).await?;
    let outcomes = submitted.iter().zip(full).enumerate();
    let outcomes = outcomes.filter_map(|(index, (submitted, is_full))| noted(index, *submitted, is_full));
    note_outcomes(&*call.server.store, outcomes.collect()).await;
    Ok(submitted)
}

/// Returns the outcome that the first request had for a task: the recorded one. Without a record it
/// inserted the next of its tasks, or another task had the key.
async fn first_result(
    call: &Call,
    request: &Idempotency,
    index: usize,
    tasks: &mut VecDeque<TaskRecord>,
    (kind, key): (&str, Option<String>),
) -> Result<Submitted, Problem> {
    if let Some(noted) = request.outcome(index) {
        let id = noted.id;
        tasks.retain(|task| task.id != id);
        return Ok(match noted.outcome.as_str() {
            "priority_raised" => Submitted::PriorityRaised { id },
            "requeued" => Submitted::Requeued { id },
            "superseded" => Submitted::Superseded { id, old: id },
            "rejected" => Submitted::Rejected { id },
            _ => Submitted::Inserted { id },
        });
    }
    if let Some(task) = tasks.pop_front_if(|task| task.kind.as_str() == kind && task.key == key) {
        return Ok(Submitted::Inserted { id: task.id });
    }
    let found = match key {
        Some(key) => call.server.engine.find(kind, key).await?,
        None => None,
    };
    found.map(|task| Submitted::Duplicate { id: task.id }).ok_or_else(result_gone)
}

/// Returns the problem of a repeated request whose result was pruned.
#[cold]
pub(super) fn result_gone() -> Problem {
    Problem::new(
        Code::IdempotencyResultGone,
        "the request was made before, and what it created was removed from history since",
        "use a new idempotency key for a new request",
    )
}
