//! Streams events as they happen.

use std::collections::VecDeque;
use std::sync::Arc;

use onward_store::{Changes, Event, EventCursor, Store, StoreReads};

use crate::bounds;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// A reader of events: every transition of every task from its cursor on, by any process, in the
/// order in which they became durable. It reads the store's history, so a slow reader delays
/// nothing, and misses nothing for as long as the history is kept. A reader that was away for
/// longer gets an error.
#[derive(Debug)]
pub struct EventStream {
    store: Arc<dyn Store>,
    changes: Changes,
    read: VecDeque<Event>,
    /// The position of the next read of the store.
    next: EventCursor,
    /// The position behind the last returned event.
    cursor: EventCursor,
}

impl EventStream {
    pub(crate) fn new(store: Arc<dyn Store>, cursor: EventCursor) -> Self {
        let changes = store.changes();
        Self { store, changes, read: VecDeque::new(), next: cursor, cursor }
    }

    /// Returns the next event, and waits for it if there is none yet. Cancel-safe.
    ///
    /// # Errors
    /// One error if events were pruned before this stream had read them
    /// ([`Error::events_forgotten`]); after it the stream continues with the oldest events that
    /// remain. The store's error if it could not be read; the stream can be used again.
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

    /// Returns the next event, or `None` if there is none yet. Cancel-safe.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next).
    pub async fn try_next(&mut self) -> Result<Option<Event>> {
        if self.read.is_empty() {
            // The next wait sees a change after this line.
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

    /// Returns the position behind the last returned event. Keep it to continue from here later,
    /// also in another process.
    #[must_use]
    pub fn cursor(&self) -> EventCursor {
        self.cursor
    }
}

/// Event streams.
impl Engine {
    /// Returns the events from `cursor` on. [`EventCursor::START`] returns all that the store still
    /// has.
    #[must_use]
    pub fn events(&self, cursor: EventCursor) -> EventStream {
        EventStream::new(Arc::clone(&self.inner.store), cursor)
    }
}
