//! The shared reader of events.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_store::{Changes, Error, EventCursor, EventPage, Hint, Store, StoreReads};
use tokio::sync::OnceCell;

use crate::http::bounds;

/// A page of events that is read at most once.
type SharedPage = Arc<OnceCell<Arc<EventPage>>>;

/// The reader of events for all streams of a server.
///
/// Streams read pages behind their own cursors. Streams at the same cursor share one read, so all
/// streams that are up to date together cost one read for each change. An empty page is valid until
/// the store reports a change; other pages never change. Without a stream nothing is read.
#[derive(Debug)]
pub(crate) struct EventFeed {
    store: Arc<dyn Store>,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    by_cursor: HashMap<EventCursor, (u64, SharedPage)>,
    /// The cursors, the oldest page first.
    order: VecDeque<EventCursor>,
}

impl EventFeed {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, pages: Mutex::default() }
    }

    /// Returns hints of changes, for a stream that waits.
    pub(crate) fn changes(&self) -> Changes {
        self.store.changes()
    }

    /// Returns the page behind a cursor.
    ///
    /// # Errors
    /// Returns the store's error. The next stream reads again.
    pub(crate) async fn page(&self, after: EventCursor) -> Result<Arc<EventPage>, Error> {
        // The hint is taken before the read. A change in between makes the page look older than it
        // is, which costs one more read and hides nothing.
        let generation = generation(self.store.changes().peek());
        let shared = self.pages().shared(after, generation);
        let read = async { self.store.events(after, bounds::EVENT_PAGE).await.map(Arc::new) };
        shared.get_or_try_init(|| read).await.map(Arc::clone)
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a number that grows with each change that may be an event.
fn generation(hint: Hint) -> u64 {
    hint.work.wrapping_add(hint.transitions).wrapping_add(hint.schedules)
}

impl Pages {
    /// Returns the page behind a cursor, which may have been read already.
    fn shared(&mut self, after: EventCursor, generation: u64) -> SharedPage {
        if let Some((read_in, page)) = self.by_cursor.get(&after)
            && (*read_in == generation || page.get().is_some_and(|page| is_final(page)))
        {
            return Arc::clone(page);
        }
        let page = SharedPage::default();
        if self.by_cursor.insert(after, (generation, Arc::clone(&page))).is_none() {
            self.order.push_back(after);
        }
        if self.order.len() > bounds::EVENT_PAGES_SHARED
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_cursor.remove(&oldest);
        }
        page
    }
}

/// Returns true if a later read behind the same cursor returns the same events, or more.
fn is_final(page: &EventPage) -> bool {
    !page.events.is_empty()
}
