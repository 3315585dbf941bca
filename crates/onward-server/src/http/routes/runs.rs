//! `/v1/runs`: runs of workflows.

use axum::http::Method;
use onward::workflow::{ItemCounts, RunAction, RunView, StepView};
use onward_store::{Page as StorePage, StoreReads as _, TaskFilter, TaskId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::route::{Access, Route, route};
use super::tasks::record;
use crate::http::access::Role;
use crate::http::problem::{Code, Problem};
use crate::http::request::{Call, decode_cursor, encode_cursor};
use crate::http::wire::{Page, Reply, TaskBody, check_limit, json, no_content, parse_states};

/// The beginning of the kinds of runs, before the name of the template.
const KIND: &str = "run:";

pub(super) fn table() -> Vec<Route> {
    let (viewer, operator) = (Access::Needs(Role::Viewer), Access::Needs(Role::Operator));
    let (get, post) = (Method::GET, Method::POST);
    vec![
        route(get.clone(), "/v1/runs", viewer, "Lists runs, the newest first.", list)
            .query::<RunQuery>()
            .returns_page::<TaskBody>("A page of runs. It may have fewer runs than its limit before the last page."),
        route(get, "/v1/runs/{id}", viewer, "Returns a run and its steps.", show).returns::<RunBody>(200, "The run."),
        route(post.clone(), "/v1/runs/{id}/actions", operator, "Sends an action to a run.", act)
            .takes::<RunActionBody>()
            .returns_nothing("The action is stored, and takes effect in the next turn of the run."),
        route(post.clone(), "/v1/runs/{id}/signals/{name}", operator, "Sends a signal to a step that waits.", signal)
            .takes_any_json()
            .returns_nothing("The signal is stored."),
        route(post.clone(), "/v1/runs/{id}/pause", operator, "Pauses a run.", pause)
            .returns_nothing("The run is paused."),
        route(post, "/v1/runs/{id}/resume", operator, "Resumes a run.", resume)
            .returns_nothing("The run is not paused."),
    ]
}

/// A filter of runs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct RunQuery {
    /// The name of the template. Default: all.
    workflow: Option<String>,
    /// The states, separated by commas. Default: all.
    state: Option<String>,
    /// `next` of the page before. Default: the first page.
    cursor: Option<String>,
    /// The largest number of runs, 1 to 1000. Default: 50.
    limit: Option<usize>,
}

/// A run.
#[derive(Debug, Serialize, ToSchema)]
struct RunBody {
    /// The id, which is that of its task.
    id: String,
    /// The name of the template.
    workflow: String,
    /// The phase.
    phase: &'static str,
    /// True if the run has ended.
    is_ended: bool,
    /// True if the run is paused.
    paused: bool,
    /// The failure of the run itself, or the reason of its bad end.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The steps, each after those that it depends on.
    steps: Vec<StepBody>,
}

/// A step of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StepBody {
    /// The name.
    name: String,
    /// The names of the steps that it depends on.
    depends_on: Vec<String>,
    /// The state.
    state: &'static str,
    /// The error, or the reason why it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The question that it asks people.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<String>,
    /// The name of the signal for which it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    /// The JSON Schema of the replies to the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_schema: Option<Value>,
    /// The id of the task of a step that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// The number of attempts.
    attempts: u32,
    /// The number of items of a step with `each`.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<StepItemsBody>,
    /// The state of the undo: `needed`, `open`, `completed` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<&'static str>,
    /// The error of an undo that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    undo_error: Option<String>,
    /// The time at which it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    /// The time of its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
    /// The time until which it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
}

/// The items of a step with `each`.
#[derive(Debug, Serialize, ToSchema)]
struct StepItemsBody {
    /// The number of all items.
    all: u32,
    /// The number of open ones.
    open: u32,
    /// The number of completed ones.
    completed: u32,
    /// The number of those that ended badly.
    bad: u32,
}

impl From<ItemCounts> for StepItemsBody {
    fn from(items: ItemCounts) -> Self {
        let ItemCounts { all, open, completed, bad, .. } = items;
        Self { all, open, completed, bad }
    }
}

impl From<RunView> for RunBody {
    fn from(run: RunView) -> Self {
        let (phase, is_ended) = (run.phase.as_str(), run.is_ended());
        let steps = run.steps.into_iter().map(StepBody::from).collect();
        let (id, paused) = (run.id.to_string(), run.is_paused);
        Self { id, workflow: run.workflow, phase, is_ended, paused, error: run.error, steps }
    }
}

impl From<StepView> for StepBody {
    fn from(step: StepView) -> Self {
        Self {
            state: step.state.as_str(),
            task: step.task.map(|task| task.to_string()),
            name: step.name,
            depends_on: step.depends_on,
            reason: step.reason,
            question: step.question,
            signal: step.signal,
            reply_schema: step.reply_schema,
            attempts: step.attempts,
            items: step.items.map(Into::into),
            undo: step.undo,
            undo_error: step.undo_error,
            started_at: step.started_at,
            ended_at: step.ended_at,
            until: step.until,
        }
    }
}

/// An action on a run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunActionBody {
    /// The action.
    action: RunActionName,
    /// The steps of `retry`. Default: all that are bad or cancelled.
    #[serde(default)]
    steps: Vec<String>,
    /// The step of `reset`, `resolve`, `complete` and `skip`.
    step: Option<String>,
    /// The result of `complete`. Default: null.
    result: Option<Value>,
    /// True undoes the run after `cancel`. Default: false.
    undo: Option<bool>,
    /// The reason, which is kept in the history.
    reason: Option<String>,
}

/// The name of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RunActionName {
    /// Runs steps again that are bad or cancelled.
    Retry,
    /// Runs a step again that ended in any way, and everything behind it.
    Reset,
    /// Takes a bad step as mended by hand.
    Resolve,
    /// Completes a step with a result.
    Complete,
    /// Skips a step.
    Skip,
    /// Cancels the run.
    Cancel,
    /// Undoes a run that has stopped.
    Undo,
}

impl RunActionBody {
    /// Returns the action, and refuses fields that it would ignore.
    fn read(self) -> Result<(RunAction, Option<String>), Problem> {
        let Self { action, steps, step, result, undo, reason } = self;
        let takes_step = matches!(
            action,
            RunActionName::Reset | RunActionName::Resolve | RunActionName::Complete | RunActionName::Skip
        );
        let unused = [
            ("steps", !steps.is_empty() && action != RunActionName::Retry),
            ("step", step.is_some() && !takes_step),
            ("result", result.is_some() && action != RunActionName::Complete),
            ("undo", undo.is_some() && action != RunActionName::Cancel),
        ];
        if let Some((field, _)) = unused.into_iter().find(|(_, is_unused)| *is_unused) {
            return Err(Problem::invalid(field, format!("the action has no `{field}`"), "leave it out"));
        }
        let named = || step.ok_or_else(|| Problem::invalid("step", "the action needs a step", "name one"));
        let action = match action {
            RunActionName::Retry => RunAction::Retry { steps },
            RunActionName::Reset => RunAction::Reset { step: named()? },
            RunActionName::Resolve => RunAction::Resolve { step: named()? },
            RunActionName::Complete => RunAction::Complete { step: named()?, result: result.unwrap_or(Value::Null) },
            RunActionName::Skip => RunAction::Skip { step: named()? },
            RunActionName::Cancel => RunAction::Cancel { undo: undo.unwrap_or(false) },
            RunActionName::Undo => RunAction::Undo,
        };
        Ok((action, reason))
    }
}

async fn list(call: Call) -> Reply {
    let query: RunQuery = call.query()?;
    let kind = query.workflow.map(|name| format!("{KIND}{name}"));
    let kind = kind.map(|kind| crate::http::wire::name("workflow", &kind)).transpose()?;
    let states = query.state.as_deref().map_or(Ok(Vec::new()), parse_states)?;
    let before = query.cursor.as_deref().map(decode_cursor::<TaskId>).transpose()?;
    let filter = TaskFilter { kind, states, orchestration: Some(true), ..TaskFilter::default() };
    let page = call.server.store.tasks(filter, StorePage { before, limit: check_limit(query.limit)? }).await?;
    let runs = page.tasks.into_iter().filter(|task| task.kind.starts_with(KIND));
    let items = runs.map(|task| TaskBody::new(task, false)).collect();
    json(&Page { items, next: page.next.map(|next| encode_cursor(&next)) })
}

pub(super) async fn run_id(call: &Call) -> Result<TaskId, Problem> {
    let record = record(call).await?;
    if record.kind.starts_with(KIND) {
        return Ok(record.id);
    }
    Err(Problem::not_found("run", call.parameter("id"), "the task is not a run; look at /v1/tasks"))
}

async fn show(call: Call) -> Reply {
    let run = call.server.engine.run_view(run_id(&call).await?).await?;
    json(&RunBody::from(run))
}

async fn act(call: Call) -> Reply {
    let body: RunActionBody = call.json()?;
    let (action, reason) = body.read()?;
    let actor = call.actor.as_ref().map(|actor| actor.name.as_str());
    call.server.engine.act_on_run(run_id(&call).await?, action, actor, reason.as_deref()).await?;
    no_content()
}

async fn signal(call: Call) -> Reply {
    let payload = call.any_json()?;
    let (run, name) = (run_id(&call).await?, call.parameter("name"));
    check_replier(&call, run, name).await?;
    call.server.engine.signal_run(run, name, &payload).await?;
    no_content()
}

/// Checks that the actor is among those whom the question of a step names, if it names some. The
/// key file is that of the local user, who may reply.
pub(super) async fn check_replier(call: &Call, run: TaskId, name: &str) -> Result<(), Problem> {
    let who = call.server.engine.repliers(run, name).await?;
    let Some(actor) = call.actor.as_ref().filter(|_| !who.is_empty()) else { return Ok(()) };
    if actor.is_key_file || who.iter().any(|one| *one == actor.name || one == actor.role.as_str()) {
        return Ok(());
    }
    let who = who.join(", ");
    Err(Problem::new(
        Code::Forbidden,
        format!("the signal `{name}` of run {run} is for {who}, and the key `{}` is {}", actor.name, actor.role),
        format!("have it sent with the key or the role {who}"),
    ))
}

async fn pause(call: Call) -> Reply {
    call.server.engine.pause_orchestration(run_id(&call).await?).await?;
    no_content()
}

async fn resume(call: Call) -> Reply {
    call.server.engine.resume_orchestration(run_id(&call).await?).await?;
    no_content()
}
