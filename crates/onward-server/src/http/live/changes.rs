//! The stream of hints that something changed.

use std::convert::Infallible;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::IntoResponse as _;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use onward_store::Changes;

use super::stream::too_many;
use crate::http::access::Actor;
use crate::http::bounds;
use crate::http::limits::OpenStream;
use crate::http::request::Call;
use crate::http::server::Server;
use crate::http::wire::Reply;

/// The state of one stream.
struct Watcher {
    server: Arc<Server>,
    /// The actor and the credential of the request, which are checked again while it lasts.
    actor: Option<Actor>,
    headers: HeaderMap,
    changes: Changes,
    number: u64,
    is_over: bool,
    /// Held until the stream ends, so that streams are bounded.
    _permit: OpenStream,
}

/// Returns a stream of server-sent events: `change` at once, and after each change of the store.
/// It reads nothing, and sends one message for all changes of [`bounds::CHANGES_INTERVAL`]. It
/// ends with `bye` when the server stops, or when the credential is not valid any more.
pub(crate) fn change_stream(call: &Call) -> Reply {
    let server = &call.server;
    let permit = server.limits.open_stream().map_err(too_many)?;
    let changes = server.store.changes();
    let (server, actor, headers) = (Arc::clone(server), call.actor.clone(), call.headers.clone());
    let watcher = Watcher { server, actor, headers, changes, number: 0, is_over: false, _permit: permit };
    let keep_alive = KeepAlive::new().interval(bounds::HEARTBEAT).text("");
    Ok(Sse::new(messages(watcher)).keep_alive(keep_alive).into_response())
}

fn messages(watcher: Watcher) -> impl Stream<Item = Result<SseEvent, Infallible>> {
    stream::unfold(watcher, |mut watcher| async move {
        let message = watcher.next().await?;
        Some((Ok(message), watcher))
    })
}

impl Watcher {
    async fn next(&mut self) -> Option<SseEvent> {
        if self.is_over {
            return None;
        }
        if self.number > 0 && !(self.wait().await && self.is_allowed().await) {
            self.is_over = true;
            return Some(SseEvent::default().event("bye").data("{}"));
        }
        // In this order, a change after the message is sent by the next one.
        self.changes.hint();
        self.number += 1;
        let data = format!("{{\"number\":{}}}", self.number);
        Some(SseEvent::default().event("change").data(data))
    }

    /// Returns true if the actor may receive more. A credential that could not be read ends the
    /// stream; the page connects again.
    async fn is_allowed(&self) -> bool {
        match &self.actor {
            Some(actor) => self.server.key_checks.is_valid(&self.server, actor, &self.headers).await.unwrap_or(false),
            None => true,
        }
    }

    /// Waits for a change, and for the end of the interval. Returns false when the server stops. A
    /// revoked credential ends the wait without a change.
    async fn wait(&mut self) -> bool {
        let changed = async {
            tokio::time::sleep(bounds::CHANGES_INTERVAL).await;
            self.changes.changed().await.is_some()
        };
        tokio::select! {
            is_there = changed => is_there,
            () = self.server.key_checks.revoked() => true,
            () = self.server.stopping.cancelled() => false,
        }
    }
}
