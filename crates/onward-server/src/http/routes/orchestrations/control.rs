//! `/v1/orchestrations`: starts, signals, pauses and ends of durable functions.

use std::collections::BTreeMap;

use axum::http::Method;
use onward::orchestration::OrchestrationStatus;
use onward_store::bounds::RESERVED_PREFIX;
use onward_store::rules::orchestration::is_run;
use onward_store::{Recipient, Submitted};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::http::access::Role;
use crate::http::change::tagged_tasks;
use crate::http::request::Call;
use crate::http::routes::route::{Access, Route, route};
use crate::http::routes::submit::{ReplyBody, SubmittedBody, respond, result_gone};
use crate::http::routes::tasks::record;
use crate::http::wire::{Content, Reply, TaskBody, check_text, json, no_content};

pub(super) fn table() -> Vec<Route> {
    let (viewer, operator) = (Access::Needs(Role::Viewer), Access::Needs(Role::Operator));
    let post = Method::POST;
    vec![
        route(post.clone(), "/v1/orchestrations", operator, "Starts an orchestration.", start)
            .takes::<StartOrchestrationBody>()
            .creates()
            .prefers_wait()
            .returns::<SubmittedBody>(201, "The orchestration was started.")
            .returns::<SubmittedBody>(202, "The orchestration did not end within the time to wait.")
            .returns::<ReplyBody>(200, "The orchestration has ended; or, without `Prefer`, another one has the key."),
        route(Method::GET, "/v1/orchestrations/{id}", viewer, "Returns an orchestration.", show)
            .returns::<OrchestrationBody>(200, "The orchestration."),
        route(post.clone(), "/v1/orchestrations/{id}/signals/{name}", operator, "Sends a signal.", signal)
            .takes_any_json()
            .creates()
            .returns_nothing("The signal is stored."),
        route(post.clone(), "/v1/orchestrations/{id}/pause", operator, "Pauses an orchestration.", pause)
            .returns_nothing("The orchestration is paused."),
        route(post.clone(), "/v1/orchestrations/{id}/resume", operator, "Resumes an orchestration.", resume)
            .returns_nothing("The orchestration is not paused."),
        route(post, "/v1/orchestrations/{id}/terminate", operator, "Ends an orchestration at once.", terminate)
            .takes::<TerminateBody>()
            .returns::<TaskBody>(200, "The task of the orchestration."),
    ]
}

/// A start of an orchestration.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StartOrchestrationBody {
    /// The kind.
    kind: String,
    /// A key that makes it unique among the active ones of its kind.
    key: Option<String>,
    /// The payload. Default: null.
    #[serde(default)]
    payload: Value,
}

/// An orchestration.
#[derive(Debug, Serialize, ToSchema)]
struct OrchestrationBody {
    /// The task.
    task: TaskBody,
    /// True if it is paused.
    paused: bool,
    /// The names of the events that it awaits.
    awaits: Vec<String>,
    /// The number of events of its history.
    history_events: u64,
    /// The status that it published, for those who may read payloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Content>,
    /// The values that it published, for those who may read payloads.
    values: BTreeMap<String, Content>,
}

/// The reason of a termination.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TerminateBody {
    /// The reason, which becomes the last error.
    reason: String,
}

async fn start(call: Call) -> Reply {
    let wait = call.wait()?;
    let StartOrchestrationBody { kind, key, payload } = call.json()?;
    key.as_deref().map_or(Ok(()), |key| check_text("key", key))?;
    let submitted = match &call.repeats {
        None => call.server.engine.start_json(&kind, key.as_deref(), &payload).await?.submitted(),
        Some(request) => {
            let first = tagged_tasks(&*call.server.store, request.digest()).await?.into_iter().next();
            Submitted::Inserted { id: first.ok_or_else(result_gone)?.id }
        }
    };
    respond(&call, submitted, wait).await
}

async fn show(call: Call) -> Reply {
    let record = record(&call).await?;
    let status: OrchestrationStatus = call.server.engine.orchestration_status(record.id).await?;
    let shows = call.reads_payloads();
    let instance = status.record();
    // Replies to updates are values with a reserved name. Only those who sent an update read them.
    let values = instance.values.iter().filter(|(key, _)| shows && !key.starts_with(RESERVED_PREFIX));
    let values = values.map(|(key, value)| (key.to_string(), Content::new(value)));
    json(&OrchestrationBody {
        task: TaskBody::new(record, false),
        paused: status.is_paused(),
        awaits: status.awaits().iter().map(ToString::to_string).collect(),
        history_events: instance.length,
        status: instance.status.as_ref().filter(|_| shows).map(Content::new),
        values: values.collect(),
    })
}

async fn signal(call: Call) -> Reply {
    let payload = call.any_json()?;
    if call.repeats.is_some() {
        return no_content();
    }
    let record = record(&call).await?;
    if is_run(&record.kind) {
        crate::http::routes::runs::check_replier(&call, record.id, call.parameter("name")).await?;
    }
    let to = Recipient::Task(record.id);
    call.server.engine.send(to, call.parameter("name"), payload.to_string().into()).await?;
    no_content()
}

async fn pause(call: Call) -> Reply {
    call.server.engine.pause_orchestration(call.task()?).await?;
    no_content()
}

async fn resume(call: Call) -> Reply {
    call.server.engine.resume_orchestration(call.task()?).await?;
    no_content()
}

async fn terminate(call: Call) -> Reply {
    let TerminateBody { reason } = call.json()?;
    check_text("reason", &reason)?;
    call.server.engine.terminate(call.task()?, &reason).await?;
    json(&TaskBody::new(record(&call).await?, false))
}
