//! The memory store: a lock, a clock and notifications around the state.

use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::api::aggregate::{PendingBatch, PendingBatchSelection};
use crate::api::document::{DocumentPage, DocumentQuery, DocumentRecord};
use crate::api::error::Result;
use crate::api::event::{EventCursor, EventPage};
use crate::api::history::QueueDay;
use crate::api::limit::LimitRecord;
use crate::api::name::Name;
use crate::api::notification::{NotificationReceiver, NotificationSender};
use crate::api::orchestration::{HistoryChunk, InstanceRecord};
use crate::api::outcome::Outcome;
use crate::api::output::{OutputStream, TaskOutput};
use crate::api::queue::QueueMode;
use crate::api::read::{Read, ReadMethods, ReadReply};
use crate::api::reason::WaitReason;
use crate::api::schedule::{ScheduleRecord, ScheduleSelection};
use crate::api::store::{
    Changes, Durability, Hint, KindStatistics, Page, PauseRecord, QueueRecord, SessionRecord, Store, StoreFuture,
    StoreInfo, TaskFilter, TaskIdPage, TaskPage,
};
use crate::api::tag::{TagKeyPage, TagPage, TagValuePage};
use crate::api::task::{TaskId, TaskRecord, check_payload_limit};
use crate::api::write::{Claim, Write};
use crate::bounds;
use crate::clock::{Clock, SystemClock};
use crate::model::{EventLog, Now, State};
use crate::watch;

/// A store that keeps everything in memory: the specification of a store, and a store for tests.
/// Its contents are lost when it is dropped.
///
/// Claims and listings may scan every task, so it is not meant for millions. Events are kept until
/// the tasks that ended with them are [pruned](crate::Write::Prune).
#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    payload_limit: usize,
    hints: watch::Sender<Hint>,
    notifications: NotificationSender,
    contents: Mutex<Contents>,
}

#[derive(Debug, Default)]
struct Contents {
    state: State,
    log: EventLog,
}

impl MemoryStore {
    /// Creates an empty store with the machine's clock and a payload limit of 1 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// Creates an empty store with the given clock.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let hints = watch::Sender::new(Hint::default());
        Self {
            clock,
            payload_limit: bounds::PAYLOAD_BYTES,
            hints,
            notifications: NotificationSender::new(),
            contents: Mutex::default(),
        }
    }

    /// Sets the limit on payloads and results, in bytes.
    ///
    /// # Errors
    /// [`is_invalid`](crate::Error::is_invalid) for more than [`bounds::PAYLOAD_BYTES_CEILING`].
    pub fn with_payload_limit(self, bytes: usize) -> Result<Self> {
        check_payload_limit(bytes)?;
        Ok(Self { payload_limit: bytes, ..self })
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
        self.notifications.notify(std::mem::take(&mut state.notifications));
        // Sent before the lock is released, so that an earlier hint cannot replace a later one.
        self.hints.send_if_modified(|sent| std::mem::replace(sent, hint) != hint);
        drop(contents);
        outcomes
    }

    fn now(&self) -> Now {
        Now { wall: self.clock.now(), steady: self.clock.steady() }
    }

    fn read<T>(&self, read: impl FnOnce(&Contents) -> T) -> StoreFuture<'_, T>
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
    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        Box::pin(ready(Ok(self.write(writes))))
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        self.dispatch(read)
    }

    fn changes(&self) -> Changes {
        Changes::new(&self.hints)
    }

    fn notifications(&self) -> NotificationReceiver {
        self.notifications.subscribe()
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
    fn task(&self, task: TaskId) -> StoreFuture<'_, Option<TaskRecord>> {
        self.read(|contents| contents.state.record(task))
    }

    fn why(&self, task: TaskId) -> StoreFuture<'_, Option<Vec<WaitReason>>> {
        let now = self.now();
        self.read(|contents| contents.state.why(task, now))
    }

    fn tasks(&self, filter: TaskFilter, page: Page) -> StoreFuture<'_, TaskPage> {
        self.read(|contents| contents.state.page(&filter, page))
    }

    fn peek(&self, claim: Claim) -> StoreFuture<'_, Option<TaskRecord>> {
        self.read(|contents| contents.state.peek(&claim, self.now()))
    }

    fn queues(&self) -> StoreFuture<'_, Vec<QueueRecord>> {
        let now = self.now().wall;
        self.read(|contents| contents.state.queue_records(now))
    }

    fn queue_mode(&self) -> StoreFuture<'_, QueueMode> {
        self.read(|contents| contents.state.mode)
    }

    fn statistics(&self) -> StoreFuture<'_, Vec<KindStatistics>> {
        self.read(|contents| contents.state.statistics.values().cloned().collect())
    }

    fn sessions(&self) -> StoreFuture<'_, Vec<SessionRecord>> {
        self.read(|contents| contents.state.session_records())
    }

    fn pauses(&self) -> StoreFuture<'_, Vec<PauseRecord>> {
        let now = self.now().wall;
        self.read(|contents| contents.state.pause_records(now))
    }

    fn limits(&self) -> StoreFuture<'_, Vec<LimitRecord>> {
        // Buckets fill with time, so the time of the last write is too old.
        let now = self.clock.steady();
        self.read(|contents| contents.state.limit_records(now))
    }

    fn pending_batches(&self, which: PendingBatchSelection) -> StoreFuture<'_, Vec<PendingBatch>> {
        self.read(|contents| contents.state.pending_batch_records(&which))
    }

    fn schedules(&self, which: ScheduleSelection) -> StoreFuture<'_, Vec<ScheduleRecord>> {
        self.read(|contents| contents.state.schedules.select(&which))
    }

    fn events(&self, after: EventCursor, limit: usize) -> StoreFuture<'_, EventPage> {
        self.read(|contents| contents.log.read(&contents.state, after, limit))
    }

    fn task_ids(&self, filter: TaskFilter, page: Page) -> StoreFuture<'_, TaskIdPage> {
        self.read(|contents| contents.state.task_ids(&filter, page))
    }

    fn count(&self, filter: TaskFilter) -> StoreFuture<'_, u64> {
        self.read(|contents| contents.state.count(&filter))
    }

    fn tag_values(&self, key: String, filter: TaskFilter, page: TagPage) -> StoreFuture<'_, TagValuePage> {
        self.read(|contents| contents.state.tag_values(&key, &filter, &page))
    }

    fn tag_keys(&self, prefix: String, page: TagPage) -> StoreFuture<'_, TagKeyPage> {
        self.read(|contents| contents.state.tag_keys(&prefix, &page))
    }

    fn instance(&self, task: TaskId) -> StoreFuture<'_, Option<InstanceRecord>> {
        self.read(|contents| contents.state.instance_record(task))
    }

    fn instance_history(&self, task: TaskId, from: u64, limit: usize) -> StoreFuture<'_, Vec<HistoryChunk>> {
        self.read(|contents| contents.state.instance_history(task, from, limit.min(bounds::PAGE)))
    }

    fn task_output(
        &self,
        task: TaskId,
        stream: OutputStream,
        from: u64,
        limit: usize,
    ) -> StoreFuture<'_, Option<TaskOutput>> {
        self.read(|contents| contents.state.task_output(task, stream, from, limit))
    }

    fn document(&self, collection: Name, key: String) -> StoreFuture<'_, Option<DocumentRecord>> {
        self.read(|contents| contents.state.documents.record(&(collection, key)))
    }

    fn documents(&self, query: DocumentQuery) -> StoreFuture<'_, DocumentPage> {
        self.read(|contents| contents.state.documents.page(&query))
    }

    fn history(&self, days: u32) -> StoreFuture<'_, Vec<QueueDay>> {
        let now = self.clock.now();
        self.read(move |contents| contents.state.history(now, days))
    }
}
