//! The store around its tasks: the writer, the readers, and what is told to those who wait.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::api::aggregate::{CollectionRecord, CollectionSelection};
use crate::api::document::{DocumentPage, DocumentQuery, DocumentRecord};
use crate::api::error::{Error, Result};
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
    Answer, Changes, Hint, KindStatistics, Page, PauseRecord, QueueRecord, SessionRecord, Store, StoreInfo, TaskFilter,
    TaskIdPage, TaskPage,
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
/// One process writes at a time, for as long as a transaction takes; calls that arrive meanwhile
/// share the next one. A session that is open when the store is dropped, or its process dies,
/// lapses when its lease is over; nobody closes it.
pub struct PostgresStore {
    pub(super) shared: Arc<Shared>,
    calls: mpsc::Sender<Call>,
    /// What listens, and what empties the inbox.
    tasks: [JoinHandle<()>; 2],
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("location", &self.shared.location()).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the store at a URL with the default of everything; see [`PostgresOptions`].
    ///
    /// # Errors
    /// As [`PostgresOptions::open`].
    pub async fn open(url: &str) -> Result<Self> {
        Self::options().open(url).await
    }

    /// How a store is opened.
    #[must_use]
    pub fn options() -> PostgresOptions {
        PostgresOptions::default()
    }

    pub(super) async fn open_with(address: Address, options: PostgresOptions) -> Result<Self> {
        let location = location(&address.config, &options.schema);
        let mut patience = RetryBudget::new(options.patience);
        let mut is_told = false;
        loop {
            match Self::open_there(address.clone(), options.clone()).await {
                Err(error) if is_not_ready(&error) && patience.lasts() => {
                    if !std::mem::replace(&mut is_told, true) {
                        tracing::warn!(%error, patience = ?options.patience, "{location} is waited for");
                    }
                    patience.wait().await;
                }
                opened => return opened.map_err(|error| named(error, &location)),
            }
        }
    }

    async fn open_there(address: Address, options: PostgresOptions) -> Result<Self> {
        let sql = Sql { schema: options.schema.clone() };
        let (client, reader) = (connect(&address).await?, connect(&address).await?);
        migrate(&client, &sql, options.migrations, options.create).await?;
        let time = server_clock::read(&client).await?;
        let node = node();
        let may_listen = options.listen && !are_pooled(&client, &reader).await?;
        let listener = if may_listen { Listener::new(&address, &sql, node, &reader).await? } else { None };
        // Where messages come through, a connection has a server process to itself.
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
            news: NewsSender::new(),
            inbox: Arc::default(),
            sees_inbox: AtomicBool::new(false),
            options,
        });
        // Callers may ask for the time before they read or write anything else.
        shared.server_clock.heard(time);
        shared.stamp.store(wake::stamp(&client, &shared).await?, Ordering::Relaxed);
        let (calls, waiting) = mpsc::channel(bounds::PENDING);
        let (flusher, unflushed) = mpsc::channel(UNFLUSHED);
        tokio::spawn(flusher::run(Arc::clone(&shared), unflushed));
        tokio::spawn(writer::run(Arc::clone(&shared), waiting, flusher, client));
        // Before anybody asks whether there is work. A role that may not do it can do everything
        // else.
        if let Err(error) = inbox::take_all(&shared, &calls, &mut None).await {
            tracing::warn!(%error, "what was submitted by others cannot be taken in");
        }
        let taker = tokio::spawn(inbox::run(Arc::downgrade(&shared), calls.downgrade()));
        let waker = tokio::spawn(wake::run(Arc::downgrade(&shared), listener, shared.options.poll));
        Ok(Self { shared, calls, tasks: [waker, taker] })
    }
}

impl PostgresStore {
    /// Looks at the server and at how it is reached: what somebody who runs the store should know.
    /// Takes some dozen commits and a few seconds.
    ///
    /// # Errors
    /// What the server says.
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
    /// Reads in a task of its own, again while the server is away. Within the caller's, one that is
    /// polled no more would keep its connection from those that the caller waits for meanwhile: a
    /// caller of many reads at once would wait for itself.
    fn read<T, F>(&self, read: impl Fn(Arc<Shared>) -> F + Send + 'static) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        Box::pin(async move {
            let mut patience = RetryBudget::new(self.shared.options.patience);
            loop {
                let reading = tokio::spawn(read(Arc::clone(&self.shared)));
                match reading.await.unwrap_or_else(|_| Err(Error::closed())) {
                    Err(error) if is_passing(&error) && patience.wait().await => {}
                    answer => return self.shared.named(answer),
                }
            }
        })
    }
}

impl Store for PostgresStore {
    fn apply(&self, writes: Vec<Write>) -> Answer<'_, Vec<Outcome>> {
        Box::pin(async move { self.shared.named(apply_until_kept(&self.shared, &self.calls, writes).await) })
    }

    fn read(&self, read: Read) -> Answer<'_, ReadReply> {
        self.dispatch(read)
    }

    fn changes(&self) -> Changes {
        Changes::new(&self.shared.hints)
    }

    fn news(&self) -> NewsReceiver {
        self.shared.news.subscribe()
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
    fn task(&self, task: TaskId) -> Answer<'_, Option<TaskRecord>> {
        self.read(move |shared| async move { reads::model_reads::task(&shared, task).await })
    }

    fn why(&self, task: TaskId) -> Answer<'_, Option<Vec<WaitReason>>> {
        self.read(move |shared| async move { reads::model_reads::why(&shared, task).await })
    }

    fn tasks(&self, filter: TaskFilter, page: Page) -> Answer<'_, TaskPage> {
        self.read(move |shared| {
            let filter = filter.clone();
            async move { reads::list::tasks(&shared, filter, page).await }
        })
    }

    fn peek(&self, claim: Claim) -> Answer<'_, Option<TaskRecord>> {
        self.read(move |shared| {
            let claim = claim.clone();
            async move { reads::model_reads::peek(&shared, claim).await }
        })
    }

    fn queues(&self) -> Answer<'_, Vec<QueueRecord>> {
        self.read(move |shared| async move { reads::queues::queues(&shared).await })
    }

    fn queue_mode(&self) -> Answer<'_, QueueMode> {
        self.read(move |shared| async move {
            reads::model_reads::look(&shared, |working_set, _| Ok(working_set.mode())).await
        })
    }

    fn statistics(&self) -> Answer<'_, Vec<KindStatistics>> {
        self.read(move |shared| async move { reads::statistics::statistics(&shared).await })
    }

    fn sessions(&self) -> Answer<'_, Vec<SessionRecord>> {
        self.read(move |shared| async move {
            reads::model_reads::look(&shared, |working_set, _| working_set.sessions()).await
        })
    }

    fn pauses(&self) -> Answer<'_, Vec<PauseRecord>> {
        self.read(move |shared| async move {
            reads::model_reads::look(&shared, |working_set, now| Ok(working_set.pauses(now))).await
        })
    }

    fn limits(&self) -> Answer<'_, Vec<LimitRecord>> {
        self.read(move |shared| async move {
            reads::model_reads::look(&shared, |working_set, now| working_set.limits(now)).await
        })
    }

    fn collections(&self, which: CollectionSelection) -> Answer<'_, Vec<CollectionRecord>> {
        self.read(move |shared| {
            let which = which.clone();
            async move { reads::model_reads::look(&shared, move |working_set, _| Ok(working_set.collections(&which))).await }
        })
    }

    fn schedules(&self, which: ScheduleSelection) -> Answer<'_, Vec<ScheduleRecord>> {
        self.read(move |shared| {
            let which = which.clone();
            async move { reads::model_reads::look(&shared, move |working_set, _| Ok(working_set.schedules(&which))).await }
        })
    }

    fn events(&self, after: EventCursor, limit: usize) -> Answer<'_, EventPage> {
        self.read(move |shared| async move { reads::events::events(&shared, after, limit).await })
    }

    fn task_ids(&self, filter: TaskFilter, page: Page) -> Answer<'_, TaskIdPage> {
        self.read(move |shared| {
            let filter = filter.clone();
            async move { reads::list::task_ids(&shared, filter, page).await }
        })
    }

    fn count(&self, filter: TaskFilter) -> Answer<'_, u64> {
        self.read(move |shared| {
            let filter = filter.clone();
            async move { reads::list::count(&shared, filter).await }
        })
    }

    fn tag_values(&self, key: String, filter: TaskFilter, page: TagPage) -> Answer<'_, TagValuePage> {
        self.read(move |shared| {
            let (key, filter, page) = (key.clone(), filter.clone(), page.clone());
            async move { reads::tags::values(&shared, key, filter, page).await }
        })
    }

    fn tag_keys(&self, prefix: String, page: TagPage) -> Answer<'_, TagKeyPage> {
        self.read(move |shared| {
            let (prefix, page) = (prefix.clone(), page.clone());
            async move { reads::tags::keys(&shared, prefix, page).await }
        })
    }

    fn history(&self, days: u32) -> Answer<'_, Vec<QueueDay>> {
        self.read(move |shared| async move { reads::statistics::history(&shared, days).await })
    }

    fn document(&self, collection: Name, key: String) -> Answer<'_, Option<DocumentRecord>> {
        self.read(move |shared| {
            let (collection, key) = (collection.clone(), key.clone());
            async move { reads::documents::document(&shared, collection, key).await }
        })
    }

    fn documents(&self, query: DocumentQuery) -> Answer<'_, DocumentPage> {
        self.read(move |shared| {
            let query = query.clone();
            async move { reads::documents::documents(&shared, query).await }
        })
    }

    fn instance(&self, task: TaskId) -> Answer<'_, Option<InstanceRecord>> {
        self.read(move |shared| async move { reads::instance::instance(&shared, task).await })
    }

    fn instance_history(&self, task: TaskId, from: u64, limit: usize) -> Answer<'_, Vec<HistoryChunk>> {
        self.read(move |shared| async move { reads::instance::history(&shared, task, from, limit).await })
    }
}
