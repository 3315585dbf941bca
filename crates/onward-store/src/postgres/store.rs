//! The PostgreSQL store: opening it, and its methods as calls of the writer and the readers.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::api::aggregate::{PendingBatch, PendingBatchSelection};
use crate::api::document::{DocumentPage, DocumentQuery, DocumentRecord};
use crate::api::error::{Error, Result};
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
    Changes, Hint, KindStatistics, Page, PauseRecord, QueueRecord, SessionRecord, Store, StoreFuture, StoreInfo,
    TaskFilter, TaskIdPage, TaskPage,
};
use crate::api::tag::{TagKeyPage, TagPage, TagValuePage};
use crate::api::task::{TaskId, TaskRecord};
use crate::api::write::{Claim, Write};
use crate::bounds;
use crate::clock::Clock;
use crate::postgres::commit::flusher::UNFLUSHED;
use crate::postgres::commit::inbox;
use crate::postgres::commit::writer::{Call, apply_until_kept};
use crate::postgres::commit::{flusher, writer};
use crate::postgres::connect::check;
use crate::postgres::connect::check::PostgresReport;
use crate::postgres::connect::connection::{Address, connect};
use crate::postgres::connect::options::PostgresOptions;
use crate::postgres::connect::pool::Pool;
use crate::postgres::connect::pool::are_pooled;
use crate::postgres::connect::retry_budget::{RetryBudget, is_not_ready, is_passing};
use crate::postgres::connect::server_clock;
use crate::postgres::migrations::migrate::migrate;
use crate::postgres::reads;
use crate::postgres::shared::location;
use crate::postgres::shared::named;
use crate::postgres::shared::{Shared, node};
use crate::postgres::sql::{READER_SETTINGS, SETTINGS, Sql};
use crate::postgres::wake;
use crate::postgres::wake::Listener;
use crate::watch;

/// A store in a PostgreSQL database (15 or newer), which many processes on many machines share.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> onward_store::Result<()> {
/// use onward_store::{NewTask, PostgresStore, Store, Write};
///
/// let store = PostgresStore::open("postgres://onward@127.0.0.1/work").await?;
/// store.apply(vec![Write::Submit(Box::new(NewTask::new("greet")?))]).await?;
/// # Ok(()) }
/// ```
///
/// One process writes at a time, for as long as one transaction takes; calls that arrive in the
/// meantime share the next one. A session that is open when the store is dropped, or when its
/// process dies, expires with its lease.
pub struct PostgresStore {
    pub(super) shared: Arc<Shared>,
    /// The queue to the writer.
    calls: mpsc::Sender<Call>,
    /// The tasks that listen for notifications and that empty the inbox. They end with the store.
    tasks: [JoinHandle<()>; 2],
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("location", &self.shared.location()).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the store at a URL with default options; see [`PostgresOptions`].
    ///
    /// # Errors
    /// As [`PostgresOptions::open`].
    pub async fn open(url: &str) -> Result<Self> {
        Self::options().open(url).await
    }

    /// Returns the default options for opening a store.
    #[must_use]
    pub fn options() -> PostgresOptions {
        PostgresOptions::default()
    }

    /// Opens the store, and waits within the retry budget for a server that is starting or
    /// restarting.
    pub(super) async fn open_with(address: Address, options: PostgresOptions) -> Result<Self> {
        let location = location(&address.config, &options.schema);
        let mut budget = RetryBudget::new(options.retry_for);
        let mut is_logged = false;
        loop {
            match Self::open_there(address.clone(), options.clone()).await {
                Err(error) if is_not_ready(&error) && budget.lasts() => {
                    if !std::mem::replace(&mut is_logged, true) {
                        tracing::warn!(%error, budget = ?options.retry_for, "{location} is waited for");
                    }
                    budget.wait().await;
                }
                opened => return opened.map_err(|error| named(error, &location)),
            }
        }
    }

    /// Opens the store once: migrates, checks if notifications arrive, and starts the background
    /// tasks.
    async fn open_there(address: Address, options: PostgresOptions) -> Result<Self> {
        let sql = Sql { schema: options.schema.clone() };
        let (client, reader) = (connect(&address).await?, connect(&address).await?);
        migrate(&client, &sql, options.migrations, options.create).await?;
        let time = server_clock::read(&client).await?;
        let node = node();
        let may_listen = options.listen && !are_pooled(&client, &reader).await?;
        let listener = if may_listen { Listener::new(&address, &sql, node, &reader).await? } else { None };
        // If notifications arrive, there is no pooler, and a connection keeps its server process.
        let plans = Arc::new(AtomicBool::new(listener.is_some()));
        let client = client.keeping_plans(SETTINGS, &plans).await?;
        let reader = reader.keeping_plans(READER_SETTINGS, &plans).await?;
        let shared = Arc::new(Shared {
            pool: Pool::new(address.clone(), options.readers, reader, Arc::clone(&plans)),
            address,
            sql,
            plans,
            unflushed: AtomicUsize::new(0),
            node,
            stamp: AtomicI64::new(0),
            server_clock: Arc::default(),
            hints: watch::Sender::new(Hint::default()),
            notifications: NotificationSender::new(),
            inbox: Arc::default(),
            sees_inbox: AtomicBool::new(false),
            options,
        });
        // Callers may read the clock before the first read or write.
        shared.server_clock.received(time);
        shared.stamp.store(wake::stamp(&client, &shared).await?, Ordering::Relaxed);
        let (calls, waiting) = mpsc::channel(bounds::PENDING);
        let (flusher, unflushed) = mpsc::channel(UNFLUSHED);
        tokio::spawn(flusher::run(Arc::clone(&shared), unflushed));
        tokio::spawn(writer::run(Arc::clone(&shared), waiting, flusher, client));
        // The inbox is emptied before the first caller can ask for work. A role without rights on
        // the inbox can still do everything else.
        if let Err(error) = inbox::take_all(&shared, &calls, &mut None).await {
            tracing::warn!(%error, "the rows of the inbox cannot be processed");
        }
        let taker = tokio::spawn(inbox::run(Arc::downgrade(&shared), calls.downgrade()));
        let waker = tokio::spawn(wake::run(Arc::downgrade(&shared), listener, shared.options.poll));
        Ok(Self { shared, calls, tasks: [waker, taker] })
    }
}

impl PostgresStore {
    /// Checks the server and the way it is reached, and returns a report for operators. It takes
    /// some dozen commits and a few seconds.
    ///
    /// # Errors
    /// The error of the server.
    pub async fn check(&self) -> Result<PostgresReport> {
        self.shared.named(check::check(&self.shared).await)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl PostgresStore {
    /// Runs a read as its own tokio task, and retries while the server is away.
    ///
    /// A read that ran within the caller's future would keep its pooled connection when the caller
    /// stops polling it. A caller with many concurrent reads could then wait for itself.
    fn read<T, F>(&self, read: impl Fn(Arc<Shared>) -> F + Send + 'static) -> StoreFuture<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        Box::pin(async move {
            let mut budget = RetryBudget::new(self.shared.options.retry_for);
            loop {
                let reading = tokio::spawn(read(Arc::clone(&self.shared)));
                match reading.await.unwrap_or_else(|_| Err(Error::closed())) {
                    Err(error) if is_passing(&error) && budget.wait().await => {}
                    reply => return self.shared.named(reply),
                }
            }
        })
    }
}

impl Store for PostgresStore {
    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        Box::pin(async move { self.shared.named(apply_until_kept(&self.shared, &self.calls, writes).await) })
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        self.dispatch(read)
    }

    fn changes(&self) -> Changes {
        Changes::new(&self.shared.hints)
    }

    fn notifications(&self) -> NotificationReceiver {
        self.shared.notifications.subscribe()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.shared.clock()
    }

    fn claim_size(&self) -> usize {
        bounds::CLAIM
    }

    fn info(&self) -> StoreInfo {
        StoreInfo {
            backend: "postgres",
            location: self.shared.location(),
            durability: self.shared.options.durability,
            schema: self.shared.options.migrations.newest(),
            payload_limit: self.shared.options.payload_limit,
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl ReadMethods for PostgresStore {
    fn task(&self, task: TaskId) -> StoreFuture<'_, Option<TaskRecord>> {
        self.read(move |shared| async move { reads::model_reads::task(&shared, task).await })
    }

    fn why(&self, task: TaskId) -> StoreFuture<'_, Option<Vec<WaitReason>>> {
        self.read(move |shared| async move { reads::model_reads::why(&shared, task).await })
    }

    fn tasks(&self, filter: TaskFilter, page: Page) -> StoreFuture<'_, TaskPage> {
        self.read(move |shared| {
            let filter = filter.clone();
            async move { reads::list::tasks(&shared, filter, page).await }
        })
    }

    fn peek(&self, claim: Claim) -> StoreFuture<'_, Option<TaskRecord>> {
        self.read(move |shared| {
            let claim = claim.clone();
            async move { reads::model_reads::peek(&shared, claim).await }
        })
    }

    fn queues(&self) -> StoreFuture<'_, Vec<QueueRecord>> {
        self.read(move |shared| async move { reads::queues::queues(&shared).await })
    }

    fn queue_mode(&self) -> StoreFuture<'_, QueueMode> {
        self.read(move |shared| async move {
            reads::model_reads::look(&shared, |working_set, _| Ok(working_set.mode())).await
        })
    }

    fn statistics(&self) -> StoreFuture<'_, Vec<KindStatistics>> {
        self.read(move |shared| async move { reads::statistics::statistics(&shared).await })
    }

    fn sessions(&self) -> StoreFuture<'_, Vec<SessionRecord>> {
        self.read(move |shared| async move {
            reads::model_reads::look(&shared, |working_set, _| working_set.sessions()).await
        })
    }

    fn pauses(&self) -> StoreFuture<'_, Vec<PauseRecord>> {
        self.read(move |shared| async move {
            reads::model_reads::look(&shared, |working_set, now| Ok(working_set.pauses(now))).await
        })
    }

    fn limits(&self) -> StoreFuture<'_, Vec<LimitRecord>> {
        self.read(move |shared| async move {
            reads::model_reads::look(&shared, |working_set, now| working_set.limits(now)).await
        })
    }

    fn pending_batches(&self, which: PendingBatchSelection) -> StoreFuture<'_, Vec<PendingBatch>> {
        self.read(move |shared| {
            let which = which.clone();
            async move {
                reads::model_reads::look(&shared, move |working_set, _| Ok(working_set.pending_batches(&which))).await
            }
        })
    }

    fn schedules(&self, which: ScheduleSelection) -> StoreFuture<'_, Vec<ScheduleRecord>> {
        self.read(move |shared| {
            let which = which.clone();
            async move { reads::model_reads::look(&shared, move |working_set, _| Ok(working_set.schedules(&which))).await }
        })
    }

    fn events(&self, after: EventCursor, limit: usize) -> StoreFuture<'_, EventPage> {
        self.read(move |shared| async move { reads::events::events(&shared, after, limit).await })
    }

    fn task_ids(&self, filter: TaskFilter, page: Page) -> StoreFuture<'_, TaskIdPage> {
        self.read(move |shared| {
            let filter = filter.clone();
            async move { reads::list::task_ids(&shared, filter, page).await }
        })
    }

    fn count(&self, filter: TaskFilter) -> StoreFuture<'_, u64> {
        self.read(move |shared| {
            let filter = filter.clone();
            async move { reads::list::count(&shared, filter).await }
        })
    }

    fn tag_values(&self, key: String, filter: TaskFilter, page: TagPage) -> StoreFuture<'_, TagValuePage> {
        self.read(move |shared| {
            let (key, filter, page) = (key.clone(), filter.clone(), page.clone());
            async move { reads::tags::values(&shared, key, filter, page).await }
        })
    }

    fn tag_keys(&self, prefix: String, page: TagPage) -> StoreFuture<'_, TagKeyPage> {
        self.read(move |shared| {
            let (prefix, page) = (prefix.clone(), page.clone());
            async move { reads::tags::keys(&shared, prefix, page).await }
        })
    }

    fn history(&self, days: u32) -> StoreFuture<'_, Vec<QueueDay>> {
        self.read(move |shared| async move { reads::statistics::history(&shared, days).await })
    }

    fn document(&self, collection: Name, key: String) -> StoreFuture<'_, Option<DocumentRecord>> {
        self.read(move |shared| {
            let (collection, key) = (collection.clone(), key.clone());
            async move { reads::documents::document(&shared, collection, key).await }
        })
    }

    fn documents(&self, query: DocumentQuery) -> StoreFuture<'_, DocumentPage> {
        self.read(move |shared| {
            let query = query.clone();
            async move { reads::documents::documents(&shared, query).await }
        })
    }

    fn instance(&self, task: TaskId) -> StoreFuture<'_, Option<InstanceRecord>> {
        self.read(move |shared| async move { reads::instance::instance(&shared, task).await })
    }

    fn task_output(
        &self,
        task: TaskId,
        stream: OutputStream,
        from: u64,
        limit: usize,
    ) -> StoreFuture<'_, Option<TaskOutput>> {
        self.read(move |shared| async move { reads::output::task_output(&shared, task, stream, from, limit).await })
    }

    fn instance_history(&self, task: TaskId, from: u64, limit: usize) -> StoreFuture<'_, Vec<HistoryChunk>> {
        self.read(move |shared| async move { reads::instance::history(&shared, task, from, limit).await })
    }
}
