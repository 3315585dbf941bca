//! The store around the state: a lock, a clock and hints.

use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::api::aggregate::{CollectionRecord, CollectionSelection};
use crate::api::document::{DocumentPage, DocumentQuery, DocumentRecord};
use crate::api::event::{EventCursor, EventPage};
use crate::api::history::QueueDay;
use crate::api::limit::LimitRecord;
use crate::api::name::Name;
use crate::api::news::{NewsReceiver, NewsSender};
use crate::api::orchestration::{HistoryChunk, InstanceRecord};
use crate::api::outcome::Outcome;
use crate::api::queue::QueueMode;
use crate::api::read::{Read, ReadMethods, ReadReply};
use crate::api::reason::WaitReason;
use crate::api::schedule::{ScheduleRecord, ScheduleSelection};
use crate::api::store::{
    Answer, Changes, Durability, Hint, KindStatistics, Page, PauseRecord, QueueRecord, SessionRecord, Store, StoreInfo,
    TaskFilter, TaskIdPage, TaskPage,
};
use crate::api::tag::{TagKeyPage, TagPage, TagValuePage};
use crate::api::task::{TaskId, TaskRecord};
use crate::api::write::{Claim, Write};
use crate::bounds;
use crate::clock::{Clock, SystemClock};
use crate::model::{EventLog, Now, State};

/// A store that keeps everything in memory: the specification of a store, and one for tests.
/// Nothing survives it.
///
/// Claims and listings may look at every task, so that it is not meant for millions. Events are
/// kept until the tasks that ended with them are [pruned](crate::Write::Prune).
#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    payload_limit: usize,
    hints: watch::Sender<Hint>,
    news: NewsSender,
    contents: Mutex<Contents>,
}

#[derive(Debug, Default)]
struct Contents {
    state: State,
    log: EventLog,
}

impl MemoryStore {
    /// An empty store that goes by the machine's clock and takes payloads of up to 1 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// An empty store that goes by `clock`.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let hints = watch::Sender::new(Hint::default());
        Self { clock, payload_limit: bounds::PAYLOAD_BYTES, hints, news: NewsSender::new(), contents: Mutex::default() }
    }

    /// The same store with another limit on payloads and results, in bytes; at most
    /// [`bounds::PAYLOAD_BYTES_CEILING`].
    #[must_use]
    pub fn with_payload_limit(self, bytes: usize) -> Self {
        Self { payload_limit: bytes.min(bounds::PAYLOAD_BYTES_CEILING), ..self }
    }

    fn write(&self, writes: Vec<Write>) -> Vec<Outcome> {
        let mut contents = self.lock();
        let Contents { state, log } = &mut *contents;
        state.now = self.now();
        state.payload_limit = self.payload_limit;
        state.entry = log.next();
        let outcomes = writes.into_iter().map(|write| state.write(write).unwrap_or_else(Outcome::Refused)).collect();
        log.append(state);
        let hint = state.hint;
        self.news.tell(std::mem::take(&mut state.news));
        // Before another write can be done: its hint must not be taken back by an earlier one.
        self.hints.send_if_modified(|sent| std::mem::replace(sent, hint) != hint);
        drop(contents);
        outcomes
    }

    fn now(&self) -> Now {
        Now { wall: self.clock.now(), steady: self.clock.steady() }
    }

    fn read<T>(&self, read: impl FnOnce(&Contents) -> T) -> Answer<'_, T>
    where
        T: Send + 'static,
    {
        Box::pin(ready(Ok(read(&self.lock()))))
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn apply(&self, writes: Vec<Write>) -> Answer<'_, Vec<Outcome>> {
        Box::pin(ready(Ok(self.write(writes))))
    }

    fn read(&self, read: Read) -> Answer<'_, ReadReply> {
        self.dispatch(read)
    }

    fn changes(&self) -> Changes {
        Changes::new(&self.hints)
    }

    fn news(&self) -> NewsReceiver {
        self.news.subscribe()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn claim_size(&self) -> usize {
        bounds::CLAIM_OF_SEVERAL
    }

    fn info(&self) -> StoreInfo {
        StoreInfo {
            backend: "memory",
            location: "memory".to_owned(),
            durability: Durability::Memory,
            schema: 1,
            payload_limit: self.payload_limit,
        }
    }
}

impl ReadMethods for MemoryStore {
    fn task(&self, task: TaskId) -> Answer<'_, Option<TaskRecord>> {
        self.read(|contents| contents.state.record(task))
    }

    fn why(&self, task: TaskId) -> Answer<'_, Option<Vec<WaitReason>>> {
        let now = self.now();
        self.read(|contents| contents.state.why(task, now))
    }

    fn tasks(&self, filter: TaskFilter, page: Page) -> Answer<'_, TaskPage> {
        self.read(|contents| contents.state.page(&filter, page))
    }

    fn peek(&self, claim: Claim) -> Answer<'_, Option<TaskRecord>> {
        self.read(|contents| contents.state.peek(&claim, self.now()))
    }

    fn queues(&self) -> Answer<'_, Vec<QueueRecord>> {
        let now = self.now().wall;
        self.read(|contents| contents.state.queue_records(now))
    }

    fn queue_mode(&self) -> Answer<'_, QueueMode> {
        self.read(|contents| contents.state.mode)
    }

    fn statistics(&self) -> Answer<'_, Vec<KindStatistics>> {
        self.read(|contents| contents.state.statistics.values().cloned().collect())
    }

    fn sessions(&self) -> Answer<'_, Vec<SessionRecord>> {
        self.read(|contents| contents.state.session_records())
    }

    fn pauses(&self) -> Answer<'_, Vec<PauseRecord>> {
        let now = self.now().wall;
        self.read(|contents| contents.state.pause_records(now))
    }

    fn limits(&self) -> Answer<'_, Vec<LimitRecord>> {
        // Tokens come with time, so the time of the last write will not do.
        let now = self.clock.steady();
        self.read(|contents| contents.state.limit_records(now))
    }

    fn collections(&self, which: CollectionSelection) -> Answer<'_, Vec<CollectionRecord>> {
        self.read(|contents| contents.state.pending_batch_records(&which))
    }

    fn schedules(&self, which: ScheduleSelection) -> Answer<'_, Vec<ScheduleRecord>> {
        self.read(|contents| contents.state.schedules.select(&which))
    }

    fn events(&self, after: EventCursor, limit: usize) -> Answer<'_, EventPage> {
        self.read(|contents| contents.log.read(&contents.state, after, limit))
    }

    fn task_ids(&self, filter: TaskFilter, page: Page) -> Answer<'_, TaskIdPage> {
        self.read(|contents| contents.state.task_ids(&filter, page))
    }

    fn count(&self, filter: TaskFilter) -> Answer<'_, u64> {
        self.read(|contents| contents.state.count(&filter))
    }

    fn tag_values(&self, key: String, filter: TaskFilter, page: TagPage) -> Answer<'_, TagValuePage> {
        self.read(|contents| contents.state.tag_values(&key, &filter, &page))
    }

    fn tag_keys(&self, prefix: String, page: TagPage) -> Answer<'_, TagKeyPage> {
        self.read(|contents| contents.state.tag_keys(&prefix, &page))
    }

    fn instance(&self, task: TaskId) -> Answer<'_, Option<InstanceRecord>> {
        self.read(|contents| contents.state.instance_record(task))
    }

    fn instance_history(&self, task: TaskId, from: u64, limit: usize) -> Answer<'_, Vec<HistoryChunk>> {
        self.read(|contents| contents.state.instance_history(task, from, limit.min(bounds::PAGE)))
    }

    fn document(&self, collection: Name, key: String) -> Answer<'_, Option<DocumentRecord>> {
        self.read(|contents| contents.state.documents.record(&(collection, key)))
    }

    fn documents(&self, query: DocumentQuery) -> Answer<'_, DocumentPage> {
        self.read(|contents| contents.state.documents.page(&query))
    }

    fn history(&self, days: u32) -> Answer<'_, Vec<QueueDay>> {
        let now = self.clock.now();
        self.read(move |contents| contents.state.history(now, days))
    }
}
