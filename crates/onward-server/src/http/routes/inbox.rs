//! `/v1/inbox`: the questions that runs ask people.

use axum::http::Method;
use onward::workflow::{RunQuery, RunView, StepView};
use onward_store::{TaskId, Timestamp};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::request::{Call, decode_cursor, encode_cursor};
use crate::http::wire::{Page, PageQuery, Reply, check_limit, json};

pub(super) fn table() -> Vec<Route> {
    vec![
        route(Method::GET, "/v1/inbox", Access::Needs(Role::Viewer), "Lists the questions that runs ask people.", list)
            .query::<PageQuery>()
            .returns_page::<QuestionBody>("The questions of a page of runs, the newest run first."),
    ]
}

/// A question. `POST /v1/runs/{run}/signals/{signal}` replies to it.
#[derive(Debug, Serialize, ToSchema)]
struct QuestionBody {
    /// The id of the run.
    run: String,
    /// The name of the template.
    workflow: String,
    /// The step that asks.
    step: String,
    /// The question.
    question: Option<String>,
    /// The name of the signal that replies.
    signal: String,
    /// The JSON Schema of the reply; null if any reply will do.
    reply_schema: Option<Value>,
    /// The time at which the step began to wait.
    #[schema(value_type = Option<String>, format = DateTime)]
    asked_at: Option<Timestamp>,
    /// The time until which it waits.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// True if the run is paused: a reply takes effect when it is resumed.
    paused: bool,
}

impl QuestionBody {
    fn new(run: &RunView, step: &StepView) -> Option<Self> {
        Some(Self {
            run: run.id.to_string(),
            workflow: run.workflow.clone(),
            step: step.name.clone(),
            question: step.question.clone(),
            signal: step.signal.clone()?,
            reply_schema: step.reply_schema.clone(),
            asked_at: step.started_at,
            until: step.until,
            paused: run.is_paused,
        })
    }
}

async fn list(call: Call) -> Reply {
    let query: PageQuery = call.query()?;
    let before = query.cursor.as_deref().map(decode_cursor::<TaskId>).transpose()?;
    let engine = &call.server.engine;
    let page = engine.runs(RunQuery { before, limit: check_limit(query.limit)?, ..RunQuery::default() }).await?;
    let mut items = Vec::new();
    for run in page.runs.into_iter().filter(|run| !run.awaits.is_empty()) {
        // A run whose template is gone cannot be read. It must not hide questions of other runs.
        let Ok(view) = engine.run_view(run.id).await else { continue };
        items.extend(view.steps.iter().filter_map(|step| QuestionBody::new(&view, step)));
    }
    json(&Page { items, next: page.next.as_ref().map(encode_cursor) })
}
