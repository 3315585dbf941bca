//! Events as they happen.

use std::collections::VecDeque;
use std::sync::Arc;

use onward_store::{Changes, Event, EventCursor, Store, StoreReads};

use crate::bounds;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// A reader of events: every transition of every task from its cursor on, in the order in which
/// they became durable, by this process or another. It reads the store's history, so a slow reader
/// costs nobody anything, and misses nothing for as long as history is kept. One that was away for
/// longer is told so.
#[derive(Debug)]
pub struct EventStream {
    store: Arc<dyn Store>,
    changes: Changes,
    read: VecDeque<Event>,
    /// Where reading goes on in the store.
    next: EventCursor,
    /// Behind the last event handed out.
    cursor: EventCursor,
}

impl EventStream {
    pub(crate) fn new(store: Arc<dyn Store>, cursor: EventCursor) -> Self {
        let changes = store.changes();
        Self { store, changes, read: VecDeque::new(), next: cursor, cursor }
    }

    /// The next event; waits for it if there is none yet. Cancel-safe.
    ///
    /// # Errors
    /// Once if events were pruned before this stream had read them ([`Error::events_forgotten`]);
    /// after that it goes on with the oldest there are. If the store could not be read; the stream
    /// can be used again.
    pub async fn next(&mut self) -> Result<Event> {
        loop {
            if let Some(event) = self.try_next().await? {
                return Ok(event);
            }
            if self.changes.changed().await.is_none() {
                return Err(onward_store::Error::closed().into());
            }
        }
    }

    /// The next event, or `None` if nothing more has happened yet. Cancel-safe.
    ///
    /// # Errors
    /// As those of [`next`](Self::next).
    pub async fn try_next(&mut self) -> Result<Option<Event>> {
        if self.read.is_empty() {
            // A change after this line is seen by the next wait.
            self.changes.hint();
            let page = self.store.events(self.next, bounds::EVENT_BATCH).await?;
            self.next = page.next;
            self.read = page.events.into();
            if let Some(oldest) = page.forgotten_up_to {
                return Err(Error::forgotten(self.cursor, oldest));
            }
        }
        let event = self.read.pop_front();
        self.cursor = event.as_ref().map_or(self.next, |event| event.cursor);
        Ok(event)
    }

    /// Behind the last event handed out: keep it to go on from here later, also in another process.
    #[must_use]
    pub fn cursor(&self) -> EventCursor {
        self.cursor
    }
}

/// Following.
impl Engine {
    /// Events from `cursor` on: [`EventCursor::START`] for all that the store still has.
    #[must_use]
    pub fn events(&self, cursor: EventCursor) -> EventStream {
        EventStream::new(Arc::clone(&self.inner.store), cursor)
    }
}
