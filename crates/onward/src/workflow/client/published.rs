//! Events that runs publish, as their readers see them.

use onward_store::{Change, Event, EventCursor, Store, StoreReads, TaskId, Timestamp};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::bounds;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::observe::EventStream;
use crate::workflow::run::{RUN_KIND_PREFIX, RunEvent, decode};

/// An event that the end of a step published (`publishes` of a template).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PublishedEvent {
    /// The position behind the event in the stream of events. A live event has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<EventCursor>,
    /// The time of the turn that published it.
    pub at: Timestamp,
    /// The run.
    pub run: TaskId,
    /// The name of the run's template.
    pub workflow: String,
    /// The name of the event.
    pub name: String,
    /// The payload.
    pub payload: Value,
}

/// Returns the published event of an entry in the stream of events. Returns `None` for any other
/// change, and for an event whose run was deleted: what a run published is deleted with it.
///
/// # Errors
/// The store's error; [`is_invalid`](Error::is_invalid) if this version cannot read the history.
pub async fn published_event(store: &dyn Store, event: &Event) -> Result<Option<PublishedEvent>> {
    let Change::Published { position } = event.change else { return Ok(None) };
    let Some(workflow) = event.kind.strip_prefix(RUN_KIND_PREFIX) else { return Ok(None) };
    let found = read_published(store, event.task, position).await?;
    Ok(found.map(|(name, payload)| PublishedEvent {
        cursor: Some(event.cursor),
        at: event.at,
        run: event.task,
        workflow: workflow.to_owned(),
        name,
        payload,
    }))
}

/// Reads the name and the payload of an event from the history of its run.
async fn read_published(store: &dyn Store, run: TaskId, position: u64) -> Result<Option<(String, Value)>> {
    let chunks = store.instance_history(run, position, 1).await?;
    let Some(chunk) = chunks.first() else { return Ok(None) };
    let events = decode(&chunk.chunk).map_err(Error::invalid)?;
    let event =
        position.checked_sub(chunk.first).and_then(|place| events.into_iter().nth(usize::try_from(place).ok()?));
    match event {
        Some(RunEvent::Published { name, payload, .. }) => Ok(Some((name, payload.value().into()))),
        _ => Ok(None),
    }
}

/// A reader of the events that runs publish with `delivery: log`, by any process, in the order in
/// which they became durable. Each reader has a cursor of its own, and misses nothing for as long
/// as the history of the runs is kept.
#[derive(Debug)]
pub struct PublishedEvents {
    stream: EventStream,
    engine: Engine,
    /// The event that is being read.
    pending: Option<Event>,
}

impl PublishedEvents {
    /// Returns the next event, and waits for it if there is none yet. Cancel-safe.
    ///
    /// # Errors
    /// As [`EventStream::next`].
    pub async fn next(&mut self) -> Result<PublishedEvent> {
        loop {
            if self.pending.is_none() {
                self.pending = Some(self.stream.next().await?);
            }
            if let Some(found) = self.read().await? {
                return Ok(found);
            }
        }
    }

    /// Returns the next event, or `None` if there is none yet. Cancel-safe.
    ///
    /// # Errors
    /// As [`EventStream::next`].
    pub async fn try_next(&mut self) -> Result<Option<PublishedEvent>> {
        loop {
            if self.pending.is_none() {
                self.pending = self.stream.try_next().await?;
            }
            if self.pending.is_none() {
                return Ok(None);
            }
            if let Some(found) = self.read().await? {
                return Ok(Some(found));
            }
        }
    }

    async fn read(&mut self) -> Result<Option<PublishedEvent>> {
        let Some(event) = &self.pending else { return Ok(None) };
        let found = published_event(&**self.engine.store(), event).await?;
        self.pending = None;
        Ok(found)
    }

    /// Returns the position behind the last event that was looked at. Keep it to continue from here
    /// later, also in another process.
    #[must_use]
    pub fn cursor(&self) -> EventCursor {
        self.stream.cursor()
    }
}

/// The sender of an engine's live events.
pub(crate) struct LiveSender(broadcast::Sender<PublishedEvent>);

impl Default for LiveSender {
    fn default() -> Self {
        Self(broadcast::Sender::new(bounds::LIVE_EVENTS))
    }
}

impl LiveSender {
    /// Returns true if there is a listener.
    pub(crate) fn has_listeners(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Sends an event to the listeners of the moment.
    pub(crate) fn send(&self, event: PublishedEvent) {
        // Without a listener the event is dropped: that is what `live` means.
        let _ = self.0.send(event);
    }
}

/// A listener to the events that runs of this engine publish with `delivery: live`.
#[derive(Debug)]
pub struct LiveEvents(broadcast::Receiver<PublishedEvent>);

impl LiveEvents {
    /// Returns the next event, and waits for it. Cancel-safe.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) with the number of events that this listener was too slow
    /// for, once; after it the listener goes on with the oldest event that it has. An error when
    /// the engine is gone.
    pub async fn next(&mut self) -> Result<PublishedEvent> {
        match self.0.recv().await {
            Ok(event) => Ok(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Err(Error::invalid(format!(
                "the listener was too slow for {missed} live events, and at most {} wait for it; listen in a task that does nothing \
                 else, or publish with `delivery: log`",
                bounds::LIVE_EVENTS
            ))),
            Err(broadcast::error::RecvError::Closed) => Err(onward_store::Error::closed().into()),
        }
    }
}

/// Events that runs publish.
impl Engine {
    /// Returns the events that runs publish with `delivery: log` (the default), from `cursor` on.
    /// [`EventCursor::START`] returns all that the store still has.
    #[must_use]
    pub fn published_events(&self, cursor: EventCursor) -> PublishedEvents {
        PublishedEvents { stream: self.events(cursor), engine: self.clone(), pending: None }
    }

    /// Listens to the events that runs publish with `delivery: live` from now on, after the commit
    /// of each. They are not stored: events of runs that another process carries on do not come
    /// here.
    #[must_use]
    pub fn live_events(&self) -> LiveEvents {
        LiveEvents(self.inner.live_events.0.subscribe())
    }

    /// Returns an event that a run published with `delivery: log`, by its position in the history.
    /// Returns `None` if there is no published event at this position.
    ///
    /// # Errors
    /// As [`run_view`](Self::run_view).
    pub async fn published_event(&self, run: TaskId, position: u64) -> Result<Option<(String, Value)>> {
        self.run_record(run).await?;
        read_published(&**self.store(), run, position).await
    }
}
