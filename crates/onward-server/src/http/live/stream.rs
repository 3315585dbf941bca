//! Event streams: server-sent events, and pages that wait.
//!
//! The id of each message is the cursor behind its event. A client that connects again sends the
//! last id, and continues without a loss at any server of the store. Events that the filter leaves
//! out have no message, so such a client has the server read them once more.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::IntoResponse as _;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use futures_util::stream::{self, Stream, StreamExt as _};
use onward_store::{Changes, EventCursor, EventPage};

use super::filter::EventFilter;
use crate::http::access::Actor;
use crate::http::bounds;
use crate::http::limits::OpenStream;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::server::Server;
use crate::http::wire::{EventBody, EventPageBody, Reply};

/// The state of one stream.
struct Follower {
    server: Arc<Server>,
    /// The actor and the credential of the request, which are checked again while it lasts.
    actor: Option<Actor>,
    headers: HeaderMap,
    changes: Changes,
    cursor: EventCursor,
    filter: EventFilter,
    is_over: bool,
    /// Held until the stream ends, so that streams are bounded.
    _permit: OpenStream,
}

impl Follower {
    fn new(call: &Call, cursor: EventCursor, filter: EventFilter) -> Result<Self, Problem> {
        let server = &call.server;
        let permit = server.limits.open_stream().map_err(too_many)?;
        let changes = server.feed.changes();
        let (server, actor, headers) = (Arc::clone(server), call.actor.clone(), call.headers.clone());
        Ok(Self { server, actor, headers, changes, cursor, filter, is_over: false, _permit: permit })
    }

    /// Returns true if the actor may receive more.
    async fn is_allowed(&self) -> Result<bool, onward_store::Error> {
        match &self.actor {
            Some(actor) => self.server.key_checks.is_valid(&self.server, actor, &self.headers).await,
            None => Ok(true),
        }
    }

    /// Returns the next page with events, or with a gap. Returns `None` when the server stops, or
    /// the key is not valid any more.
    async fn next_page(&mut self) -> Result<Option<Arc<EventPage>>, onward_store::Error> {
        loop {
            // In this order, a change after the read is seen by the wait.
            self.changes.hint();
            let page = self.server.feed.page(self.cursor).await?;
            // The cursor moves past events that the filter leaves out. Otherwise a stream that
            // selects nothing would read the same page for ever.
            self.cursor = page.next;
            if !page.events.is_empty() || page.forgotten_up_to.is_some() {
                return Ok(self.is_allowed().await?.then_some(page));
            }
            tokio::select! {
                changed = self.changes.changed() => if changed.is_none() { return Ok(None) },
                () = self.server.key_checks.revoked() => if !self.is_allowed().await? { return Ok(None) },
                () = self.server.stopping.cancelled() => return Ok(None),
            }
        }
    }

    /// Returns the next messages of the stream. Returns `None` after its last message.
    async fn next_messages(&mut self) -> Option<Vec<SseEvent>> {
        while !self.is_over {
            match self.next_page().await {
                Ok(Some(page)) => {
                    let messages = messages(&page, &self.filter);
                    if !messages.is_empty() {
                        return Some(messages);
                    }
                }
                Ok(None) => {
                    self.is_over = true;
                    return Some(vec![SseEvent::default().event("bye").data("{}")]);
                }
                Err(error) => {
                    tracing::error!(%error, "an event stream ends because the store failed");
                    self.is_over = true;
                }
            }
        }
        None
    }
}

#[cold]
pub(super) fn too_many(limit: usize) -> Problem {
    Problem::new(
        Code::TooManyStreams,
        format!("{limit} event streams are open, which is the limit"),
        "close some, or try again later",
    )
    .retry_after(5)
}

fn messages(page: &EventPage, filter: &EventFilter) -> Vec<SseEvent> {
    let gap = page.forgotten_up_to.map(|up_to| {
        let data = serde_json::json!({ "up_to": up_to.to_string() }).to_string();
        SseEvent::default().event("gap").id(up_to.to_string()).data(data)
    });
    let selected = page.events.iter().filter(|event| filter.selects(event)).map(|event| {
        let body = EventBody::from(event);
        let data = serde_json::to_string(&body).unwrap_or_default();
        SseEvent::default().event(body.change()).id(event.cursor.to_string()).data(data)
    });
    gap.into_iter().chain(selected).collect()
}

/// Returns a stream of server-sent events behind a cursor. It ends with `bye` when the server
/// stops, or the key of the request is not valid any more.
pub(crate) fn event_stream(call: &Call, after: EventCursor, filter: EventFilter) -> Reply {
    let follower = Follower::new(call, after, filter)?;
    let keep_alive = KeepAlive::new().interval(bounds::HEARTBEAT).text("");
    Ok(Sse::new(sse(follower)).keep_alive(keep_alive).into_response())
}

fn sse(follower: Follower) -> impl Stream<Item = Result<SseEvent, Infallible>> {
    let pages = stream::unfold(follower, |mut follower| async move {
        let messages = follower.next_messages().await?;
        Some((stream::iter(messages.into_iter().map(Ok)), follower))
    });
    pages.flatten()
}

/// Returns the events behind a cursor, and waits for the first if there is none and `wait` is set.
pub(crate) async fn read_page(
    call: &Call,
    after: EventCursor,
    filter: EventFilter,
    wait: Option<Duration>,
) -> Result<EventPageBody, Problem> {
    let Some(wait) = wait else { return now(&call.server, after, &filter).await };
    let mut follower = Follower::new(call, after, filter)?;
    let selected = async {
        loop {
            let Some(page) = follower.next_page().await? else { return Ok(None) };
            let body = body(&page, &follower.filter);
            if !body.events.is_empty() || body.gap.is_some() {
                return Ok::<_, onward_store::Error>(Some(body));
            }
        }
    };
    match tokio::time::timeout(wait, selected).await {
        Ok(found) => Ok(found?.unwrap_or_else(|| empty(after))),
        // The events that were read were not selected, so the next request skips them.
        Err(_) => Ok(empty(follower.cursor)),
    }
}

/// Returns the next selected events; none if the store has none within the next
/// [`bounds::EVENT_PAGES_READ`] pages.
async fn now(server: &Server, after: EventCursor, filter: &EventFilter) -> Result<EventPageBody, Problem> {
    let mut after = after;
    for _ in 0..bounds::EVENT_PAGES_READ {
        let page = server.feed.page(after).await?;
        let body = body(&page, filter);
        if page.events.is_empty() || !body.events.is_empty() || body.gap.is_some() {
            return Ok(body);
        }
        after = page.next;
    }
    Ok(empty(after))
}

fn body(page: &EventPage, filter: &EventFilter) -> EventPageBody {
    let events = page.events.iter().filter(|event| filter.selects(event)).map(EventBody::from).collect();
    EventPageBody { events, next: page.next.to_string(), gap: page.forgotten_up_to.map(|up_to| up_to.to_string()) }
}

fn empty(next: EventCursor) -> EventPageBody {
    EventPageBody { events: Vec::new(), next: next.to_string(), gap: None }
}
