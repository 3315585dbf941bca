//! Event streams.

use axum::http::{Method, header};
use onward_store::{EventCursor, TaskId};
use serde::Deserialize;
use utoipa::IntoParams;

use super::route::{Access, Route, route};
use super::tasks::record;
use crate::http::access::Role;
use crate::http::bounds;
use crate::http::live::{EventFilter, event_stream, read_page};
use crate::http::problem::Problem;
use crate::http::request::Call;
use crate::http::wire::{EventPageBody, Reply, json, name, read_duration};

pub(super) fn table() -> Vec<Route> {
    let viewer = Access::Needs(Role::Viewer);
    let events = |path, summary| {
        route(Method::GET, path, viewer, summary, events)
            .waits()
            .header("Accept", "`text/event-stream` for a stream; otherwise a page in JSON.")
            .header("Last-Event-ID", "The cursor of the last event that a stream received.")
            .returns::<EventPageBody>(200, "Events behind the cursor.")
            .returns_other("text/event-stream", "A stream; the id of each message is its cursor.")
    };
    vec![
        events("/v1/events", "Follows the events of all tasks.").query::<EventsQuery>(),
        events("/v1/tasks/{id}/events", "Follows the events of one task.").query::<TaskEventsQuery>(),
    ]
}

/// The position and the filter of a stream.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// The cursor after which events are returned. Default: the oldest event that is kept.
    after: Option<String>,
    /// The longest time to wait for an event, at most 60s; not for a stream. Default: none.
    wait: Option<String>,
    /// The kinds, separated by commas. Default: all.
    kinds: Option<String>,
    /// The queue. Default: all.
    queue: Option<String>,
    /// True returns only the ends of tasks. Default: false.
    ends: Option<bool>,
}

/// The position of a stream of one task.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct TaskEventsQuery {
    /// The cursor after which events are returned. Default: the oldest event that is kept.
    after: Option<String>,
    /// The longest time to wait for an event, at most 60s; not for a stream. Default: none.
    wait: Option<String>,
}

async fn events(call: Call) -> Reply {
    let (query, task) = if call.parameter("id").is_empty() {
        (call.query::<EventsQuery>()?, None)
    } else {
        let TaskEventsQuery { after, wait } = call.query()?;
        (EventsQuery { after, wait, ..EventsQuery::default() }, Some(record(&call).await?.id))
    };
    let filter = query.filter(task)?;
    let after = call.header("last-event-id").map(str::to_owned).or(query.after);
    let after = match after {
        Some(text) => text.parse().map_err(|error: onward_store::Error| Problem::from(error).field("after"))?,
        None => EventCursor::START,
    };
    if wants_stream(&call) {
        if query.wait.is_some() {
            return Err(Problem::invalid("wait", "a stream waits by itself", "leave it out"));
        }
        return event_stream(&call, after, filter);
    }
    let wait = query.wait.map(|wait| read_duration(&wait)).transpose();
    let wait = wait.map_err(|message| Problem::invalid("wait", message, "write it as wait=30s"))?;
    let page: EventPageBody = read_page(&call, after, filter, wait.map(|wait| wait.min(bounds::WAIT))).await?;
    json(&page)
}

fn wants_stream(call: &Call) -> bool {
    call.header(header::ACCEPT.as_str()).is_some_and(|accept| accept.contains("text/event-stream"))
}

impl EventsQuery {
    fn filter(&self, task: Option<TaskId>) -> Result<EventFilter, Problem> {
        let kinds = self.kinds.as_deref().map(|kinds| kinds.split(',').map(|kind| name("kinds", kind)).collect());
        Ok(EventFilter {
            task,
            kinds: kinds.transpose()?.unwrap_or_default(),
            queue: self.queue.as_deref().map(|queue| name("queue", queue)).transpose()?,
            ends: self.ends.unwrap_or(false),
        })
    }
}
