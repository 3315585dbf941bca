//! The store around its tasks: the writer, the readers, and what is told to those who wait.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::check::{self, PostgresReport};
use super::clock::{self, ServerClock};
use super::connection::{Address, Pool, are_pooled, connect};
use super::error::driver_error;
use super::flusher::{self, UNFLUSHED};
use super::migrate::migrate;
use super::options::PostgresOptions;
use super::patience::{Patience, is_not_ready, is_passing};
use super::sql::Sql;
use super::sql::{READER_SETTINGS, SETTINGS};
use super::wake::Listener;
use super::writer::{self, Call, apply_until_kept};
use super::{inbox, reads, wake};
use crate::api::aggregate::{CollectionRecord, CollectionSelection};
use crate::api::error::{Error, Result};
use crate::api::event::{EventCursor, EventPage};
use crate::api::history::QueueDay;
use crate::api::limit::LimitRecord;
use crate::api::news::{NewsReceiver, NewsSender, TaskNews};
use crate::api::orchestration::{HistoryChunk, InstanceRecord};
use crate::api::outcome::Outcome;
use crate::api::queue::QueueMode;
use crate::api::reason::WaitReason;
use crate::api::schedule::{ScheduleRecord, ScheduleSelection};
use crate::api::store::{
    Answer, Changes, Hint, KindStatistics, Page, PauseRecord, QueueRecord, SessionRecord, Store, StoreInfo, TaskFilter,
    TaskIdPage, TaskPage,
};
use crate::api::tag::{TagKeyPage, TagPage, TagValuePage};
use crate::api::task::{TaskId, TaskRecord};
use crate::api::timestamp::Timestamp;
use crate::api::write::{Claim, Write};
use crate::bounds;
use crate::clock::Clock;
use crate::memory::{Now, Ran};

/// The port that a URL need not say.
const USUAL_PORT: u16 = 5432;

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

/// What the writer, the readers and the listener have in common.
pub(super) struct Shared {
    pub(super) address: Address,
    pub(super) sql: Sql,
    pub(super) options: PostgresOptions,
    pub(super) pool: Pool,
    /// Whether connections keep the plans of their statements: not where each transaction may meet
    /// another process of the server.
    pub(super) plans: Arc<AtomicBool>,
    /// How many transactions wait for the disk.
    unflushed: AtomicUsize,
    /// Tells this process's messages from those of others.
    pub(super) node: u64,
    /// The stamp of the store when this process saw it last.
    stamp: AtomicI64,
    server_clock: Arc<ServerClock>,
    hints: watch::Sender<Hint>,
    news: NewsSender,
    /// Rung when there may be something in the inbox.
    pub(super) inbox: Arc<Notify>,
    /// Whether the role may look into the inbox.
    pub(super) sees_inbox: AtomicBool,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("location", &self.shared.location()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("location", &self.location()).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        match &self.options.clock {
            Some(clock) => Arc::clone(clock),
            None => Arc::clone(&self.server_clock) as Arc<dyn Clock>,
        }
    }

    /// The time by the store's clock, where the server's says `microseconds`.
    pub(super) fn now(&self, microseconds: i64) -> Now {
        let server = self.server_clock.heard(microseconds);
        match &self.options.clock {
            Some(clock) => Now { wall: clock.now(), steady: clock.steady() },
            None => server,
        }
    }

    /// The time by the store's clock, as far as can be told without asking the server.
    pub(super) fn about_now(&self) -> Now {
        match &self.options.clock {
            Some(clock) => Now { wall: clock.now(), steady: clock.steady() },
            None => self.server_clock.about_now(),
        }
    }

    /// Takes note of what was committed. A hint is never the truth, so that whoever hears it may
    /// look already.
    pub(super) fn committed(&self, ran: &Ran) {
        self.stamp.store(ran.stamp(), Ordering::Relaxed);
        self.hint(ran.hint);
    }

    /// Tells those who wait here what is on disk.
    pub(super) fn tell(&self, news: Vec<TaskNews>) {
        self.news.tell(news);
    }

    /// Counts transactions that wait for the disk.
    pub(super) fn unflushed(&self, transactions: usize) {
        self.unflushed.fetch_add(transactions, Ordering::AcqRel);
    }

    pub(super) fn flushed(&self, transactions: usize) {
        self.unflushed.fetch_sub(transactions, Ordering::AcqRel);
    }

    /// Whether none waits.
    pub(super) fn is_flushed(&self) -> bool {
        self.unflushed.load(Ordering::Acquire) == 0
    }

    pub(super) fn hint(&self, hint: Hint) {
        self.hints.send_if_modified(|hints| {
            hints.add(hint);
            hint != Hint::default()
        });
    }

    /// Takes the stamp that the store has now; another one than the last says that somebody else
    /// wrote. Answers whether it is another.
    pub(super) fn saw(&self, stamp: i64) -> bool {
        let is_new = self.stamp.swap(stamp, Ordering::Relaxed) != stamp;
        if is_new {
            self.anything_may_have_happened();
        }
        is_new
    }

    /// Nobody knows what was written meanwhile: whoever waits looks again.
    pub(super) fn anything_may_have_happened(&self) {
        self.others_wrote(Hint { work: 1, transitions: 1, schedules: 1 });
    }

    /// Somebody else wrote: anything may have happened.
    pub(super) fn others_wrote(&self, hint: Hint) {
        self.news.tell_missed();
        self.hint(hint);
    }

    /// What other processes are told.
    pub(super) fn message(&self, hint: Hint) -> String {
        wake::message(self.node, hint)
    }

    fn location(&self) -> String {
        location(&self.address.config, &self.sql.schema)
    }

    /// What is told to callers: which server it is that failed.
    fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| named(error, &self.location()))
    }
}

/// A store for people: without user and password.
fn location(config: &Config, schema: &str) -> String {
    let host = |(at, host): (usize, &Host)| {
        let name = match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        };
        // One port may be for all.
        match config.get_ports().get(at).or(config.get_ports().first()) {
            Some(port) if *port != USUAL_PORT => format!("{name}:{port}"),
            _ => name,
        }
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{}/{database}#{schema}", hosts.join(","))
}

/// Says at which server something failed; what it did not say has nothing to do with it.
#[cold]
fn named(error: Error, location: &str) -> Error {
    if driver_error(&error).is_some() { error.about(location) } else { error }
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
        let mut patience = Patience::new(options.patience);
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
        let time = clock::read(&client).await?;
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

/// A number that nobody else has, as good as certainly.
pub(super) fn node() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
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
            let mut patience = Patience::new(self.shared.options.patience);
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

    fn task(&self, task: TaskId) -> Answer<'_, Option<TaskRecord>> {
        self.read(move |shared| async move { reads::look::task(&shared, task).await })
    }

    fn why(&self, task: TaskId) -> Answer<'_, Option<Vec<WaitReason>>> {
        self.read(move |shared| async move { reads::look::why(&shared, task).await })
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
            async move { reads::look::peek(&shared, claim).await }
        })
    }

    fn queues(&self) -> Answer<'_, Vec<QueueRecord>> {
        self.read(move |shared| async move { reads::queues::queues(&shared).await })
    }

    fn queue_mode(&self) -> Answer<'_, QueueMode> {
        self.read(move |shared| async move { reads::look::look(&shared, |partial, _| Ok(partial.mode())).await })
    }

    fn statistics(&self) -> Answer<'_, Vec<KindStatistics>> {
        self.read(move |shared| async move { reads::statistics::statistics(&shared).await })
    }

    fn sessions(&self) -> Answer<'_, Vec<SessionRecord>> {
        self.read(move |shared| async move { reads::look::look(&shared, |partial, _| partial.sessions()).await })
    }

    fn pauses(&self) -> Answer<'_, Vec<PauseRecord>> {
        self.read(move |shared| async move { reads::look::look(&shared, |partial, now| Ok(partial.pauses(now))).await })
    }

    fn limits(&self) -> Answer<'_, Vec<LimitRecord>> {
        self.read(move |shared| async move { reads::look::look(&shared, |partial, now| partial.limits(now)).await })
    }

    fn collections(&self, which: CollectionSelection) -> Answer<'_, Vec<CollectionRecord>> {
        self.read(move |shared| {
            let which = which.clone();
            async move { reads::look::look(&shared, move |partial, _| Ok(partial.collections(&which))).await }
        })
    }

    fn schedules(&self, which: ScheduleSelection) -> Answer<'_, Vec<ScheduleRecord>> {
        self.read(move |shared| {
            let which = which.clone();
            async move { reads::look::look(&shared, move |partial, _| Ok(partial.schedules(&which))).await }
        })
    }

    fn events(&self, after: EventCursor, limit: usize) -> Answer<'_, EventPage> {
        self.read(move |shared| async move { reads::events::events(&shared, after, limit).await })
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

    fn instance(&self, task: TaskId) -> Answer<'_, Option<InstanceRecord>> {
        self.read(move |shared| async move { reads::instance::instance(&shared, task).await })
    }

    fn instance_history(&self, task: TaskId, from: u64, limit: usize) -> Answer<'_, Vec<HistoryChunk>> {
        self.read(move |shared| async move { reads::instance::history(&shared, task, from, limit).await })
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// The moment of a read by the store's clock.
pub(super) fn wall(shared: &Shared) -> Timestamp {
    shared.clock().now()
}
