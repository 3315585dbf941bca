//! The follower: reads events, and submits a task for each delivery.

use std::sync::Arc;
use std::time::Duration;

use onward_store::bounds::WEBHOOK_KIND;
use onward_store::{
    Error, Event, EventCursor, ExpectedVersion, Name, NewTask, Outcome, PutDocument, Refusal, StoreReads as _, Write,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::sender::{DELIVERY_QUEUE, delivery_retry};
use super::webhook::{StoredWebhook, event_name};
use crate::http::bounds;
use crate::http::server::Server;
use crate::http::wire::EventBody;

/// The collection of the cursor.
const COLLECTION: &str = "onward.webhook-cursor";

/// The key of the document of the cursor.
const KEY: &str = "cursor";

/// The time between two reads of the webhooks while there are none, and after a failure.
const PAUSE: Duration = Duration::from_secs(10);

/// The payload of a delivery.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Delivery {
    /// The id of the webhook.
    pub(super) webhook: String,
    /// The id of the delivery, the same for each attempt.
    pub(super) id: String,
    /// The content to send.
    pub(super) body: String,
}

/// The position of the follower, and the version of its document there.
#[derive(Debug, Clone, Copy)]
struct Position {
    cursor: EventCursor,
    version: ExpectedVersion,
    /// The number of pages without deliveries since the cursor was stored.
    skipped: u32,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// More events may be there.
    More,
    /// All events were read.
    UpToDate,
    /// There are no webhooks, or too many deliveries wait.
    Idle,
}

/// Follows the events until `stop` is cancelled. `begin` is called before the first delivery.
pub(super) async fn follow(server: &Arc<Server>, stop: &CancellationToken, begin: impl Fn()) {
    let mut changes = server.store.changes();
    let mut position = None;
    loop {
        // In this order, a change after the read is seen by the wait.
        changes.hint();
        let created = server.webhooks.created.notified();
        tokio::pin!(created);
        created.as_mut().enable();
        let step = match step(server, &mut position, &begin).await {
            Ok(step) => step,
            Err(error) => {
                tracing::warn!(%error, "events could not be read for the webhooks; the server tries again");
                position = None;
                Step::Idle
            }
        };
        let wait = async {
            match step {
                Step::More => {}
                Step::UpToDate => drop(changes.changed().await),
                Step::Idle => {
                    tokio::time::sleep(PAUSE).await;
                    changes.changed().await;
                }
            }
        };
        tokio::select! {
            () = wait => {}
            () = created => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn step(server: &Server, position: &mut Option<Position>, begin: &impl Fn()) -> Result<Step, Error> {
    let webhooks = server.webhooks.list().await?;
    if webhooks.is_empty() {
        return Ok(Step::Idle);
    }
    begin();
    let here = match *position {
        Some(here) => here,
        None => stored_position(server).await?,
    };
    let page = server.store.events(here.cursor, bounds::WEBHOOK_EVENTS).await?;
    if let Some(up_to) = page.forgotten_up_to {
        tracing::warn!(%up_to, "events were pruned before they were sent to the webhooks");
    }
    let deliveries = deliveries(&webhooks, &page.events)?;
    let is_full = page.events.len() >= bounds::WEBHOOK_EVENTS;
    if deliveries.is_empty() && here.skipped < bounds::WEBHOOK_PAGES_SKIPPED {
        // The cursor is only kept here: a restart reads these pages again.
        *position = Some(Position { cursor: page.next, skipped: here.skipped + 1, ..here });
        return Ok(if page.events.is_empty() { Step::UpToDate } else { Step::More });
    }
    if is_full && backlog(server).await? >= bounds::WEBHOOK_BACKLOG {
        tracing::warn!("too many deliveries to webhooks wait; the server reads no further events for now");
        return Ok(Step::Idle);
    }
    *position = move_to(server, here, page.next, deliveries).await?;
    Ok(Step::More)
}

/// Submits deliveries and stores the cursor behind their events, both or neither. Returns `None` if
/// another server has moved the cursor.
async fn move_to(
    server: &Server,
    here: Position,
    next: EventCursor,
    deliveries: Vec<Write>,
) -> Result<Option<Position>, Error> {
    let cursor = PutDocument {
        expect: here.version,
        content_type: "text/plain".to_owned(),
        ..PutDocument::new(Name::new(COLLECTION)?, KEY, next.to_string().into_bytes())
    };
    let mut writes = deliveries;
    writes.push(Write::PutDocument(Box::new(cursor)));
    match server.store.apply(vec![Write::All(writes)]).await?.pop() {
        Some(Outcome::All(_)) => {
            let version = match here.version {
                ExpectedVersion::Version(version) => version + 1,
                _ => 1,
            };
            Ok(Some(Position { cursor: next, version: ExpectedVersion::Version(version), skipped: 0 }))
        }
        Some(Outcome::Refused(Refusal::InAll { refusal, .. }))
            if matches!(*refusal, Refusal::DocumentChanged { .. }) =>
        {
            Ok(None)
        }
        Some(Outcome::Refused(refusal)) => Err(Error::invalid(refusal.to_string())),
        _ => Err(Error::corrupt("the store returned the outcome of another write for deliveries to webhooks")),
    }
}

async fn stored_position(server: &Server) -> Result<Position, Error> {
    let Some(found) = server.store.document(Name::new(COLLECTION)?, KEY.to_owned()).await? else {
        return Ok(Position { cursor: EventCursor::START, version: ExpectedVersion::Absent, skipped: 0 });
    };
    let text = String::from_utf8_lossy(found.content.as_deref().unwrap_or_default()).into_owned();
    Ok(Position { cursor: text.parse()?, version: ExpectedVersion::Version(found.version), skipped: 0 })
}

/// Returns the number of deliveries that wait.
async fn backlog(server: &Server) -> Result<u64, Error> {
    let queues = server.store.queues().await?;
    let queue = queues.iter().find(|queue| *queue.name == *DELIVERY_QUEUE);
    Ok(queue.map_or(0, |queue| queue.waiting + queue.scheduled))
}

fn deliveries(webhooks: &[(String, StoredWebhook)], events: &[Event]) -> Result<Vec<Write>, Error> {
    let mut writes = Vec::new();
    // An event of a delivery that caused another delivery would never end.
    for event in events.iter().filter(|event| *event.kind != *WEBHOOK_KIND) {
        for (id, _) in webhooks.iter().filter(|(_, webhook)| webhook.selects(event)) {
            writes.push(Write::Submit(Box::new(delivery(id, event)?)));
        }
    }
    Ok(writes)
}

fn delivery(webhook: &str, event: &Event) -> Result<NewTask, Error> {
    let body = json!({
        "type": format!("task.{}", event_name(event)),
        "timestamp": event.at,
        "data": EventBody::from(event),
    });
    let id = format!("{webhook}-{}", event.cursor);
    let delivery = Delivery { webhook: webhook.to_owned(), id, body: body.to_string() };
    let payload = serde_json::to_vec(&delivery).map_err(|error| Error::corrupt(error.to_string()))?;
    let mut new = NewTask::new(WEBHOOK_KIND)?;
    new.queue = Name::new(DELIVERY_QUEUE)?;
    new.payload = payload.into();
    new.retry = Some(delivery_retry());
    new.retention = Some(bounds::DELIVERIES_KEPT);
    new.tags.set("webhook", webhook);
    Ok(new)
}
