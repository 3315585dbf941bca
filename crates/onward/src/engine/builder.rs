//! How an engine is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use onward_store::rules::retry::RetryPolicy;
use onward_store::{Clock, CodecStore, Durability, IoKind, Name, PayloadCodec, QueueMode, Store};

use super::inner::Engine;
use super::settings::Settings;
use super::store_location::StoreLocation;
use crate::error::Result;
use crate::limits::Preemption;
use crate::pressure::{PressureSource, Throttle};

/// Opens an [`Engine`] with other than the default settings.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), onward::Error> {
/// use std::time::Duration;
/// use onward::Engine;
///
/// let engine = Engine::builder().memory().concurrency(16).timeout(Duration::from_secs(60)).open().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct EngineBuilder {
    location: StoreLocation,
    settings: Settings,
    names: Names,
    codec: Option<Arc<dyn PayloadCodec>>,
}

/// Names as they were given, not yet checked.
#[derive(Debug, Default)]
struct Names {
    queues: Option<Vec<String>>,
    queue_retry: Vec<(String, RetryPolicy)>,
}

impl EngineBuilder {
    pub(crate) fn new() -> Self {
        Self { location: StoreLocation::default(), settings: Settings::default(), names: Names::default(), codec: None }
    }

    /// Keeps the work in a SQLite file, which is made if it is missing.
    #[must_use]
    pub fn sqlite(mut self, path: impl Into<PathBuf>) -> Self {
        self.location.path = Some(path.into());
        self
    }

    /// Keeps the work in a PostgreSQL database (15 or newer), which many processes on many machines
    /// share: `postgres://user@host/database`, with `#schema` behind it where the tables are not to
    /// be in the schema `onward`.
    #[cfg(feature = "postgres")]
    #[must_use]
    pub fn postgres(mut self, url: impl Into<String>) -> Self {
        self.location.url = Some(url.into());
        self
    }

    /// Keeps the work in a file or in a database, as [`Engine::open`] does.
    pub(crate) fn location(mut self, location: &Path) -> Self {
        self.location.set(location);
        self
    }

    /// Keeps the work in memory: nothing survives the process. For tests.
    #[must_use]
    pub fn memory(mut self) -> Self {
        self.location.memory = true;
        self
    }

    /// Keeps the work in a store that is open already, which other engines may share.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.location.store = Some(store);
        self
    }

    /// What an acknowledgement means; for [`sqlite`](Self::sqlite) and `postgres`. Default: it
    /// survives power loss.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.location.durability = Some(durability);
        self
    }

    /// The largest payload or result, in bytes; for [`sqlite`](Self::sqlite), `postgres` and
    /// [`memory`](Self::memory). Default: 1 MiB.
    #[must_use]
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.location.payload_limit = Some(bytes);
        self
    }

    /// The clock; for [`sqlite`](Self::sqlite), `postgres` and [`memory`](Self::memory). Default:
    /// the machine's, and with `postgres` the server's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.location.clock = Some(clock);
        self
    }

    /// How many handlers run at once, 1 to 100 000. Default: four for each core.
    #[must_use]
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.settings.concurrency = handlers;
        self
    }

    /// How many turns of orchestrations run at once, steps included, beside the handlers of tasks;
    /// where they are short, others are claimed ahead and wait for a moment. From 1 to
    /// [`bounds::TURNS`](crate::bounds::TURNS); default: 256.
    #[must_use]
    pub fn turns(mut self, turns: usize) -> Self {
        self.settings.turns = turns;
        self
    }

    /// How many orchestrations stay in memory between their turns, so that what comes for one costs
    /// no replay of its history; of more, those are evicted that have had no turn for the longest
    /// time. Up to [`bounds::ORCHESTRATIONS_KEPT`](crate::bounds::ORCHESTRATIONS_KEPT); default:
    /// 10 000.
    #[must_use]
    pub fn orchestrations_kept(mut self, orchestrations: usize) -> Self {
        self.settings.orchestrations_kept = orchestrations;
        self
    }

    /// How payloads, results and what orchestrations keep are encoded before they come to the
    /// store, for compression or encryption. Every program that uses the store needs the same.
    /// Default: as they are.
    ///
    /// Handlers' transactions on the store's own connection are refused then.
    #[must_use]
    pub fn codec(mut self, codec: impl PayloadCodec) -> Self {
        self.codec = Some(Arc::new(codec));
        self
    }

    /// How many events the history of an orchestration may have. One that comes to more is a dead
    /// letter, which goes on where it was when it is [retried](Engine::retry) under a higher limit,
    /// or with code that [continues as
    /// new](crate::orchestration::OrchestrationContext::continue_as_new); at half of it the log
    /// warns. Default: 100 000.
    #[must_use]
    pub fn history_events(mut self, events: u64) -> Self {
        self.settings.history_events = events;
        self
    }

    /// How many bytes it may have, in the same way. Default: 64 MiB.
    #[must_use]
    pub fn history_bytes(mut self, bytes: u64) -> Self {
        self.settings.history_bytes = bytes;
        self
    }

    /// How long claimed tasks are safe from others without a sign of life: so late are the tasks of
    /// a crashed process taken over. 100 ms to 24 h; default 10 s. The engine gives a sign of life
    /// after a third of it.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// How tasks are tried again whose own, kind's and queue's policies say nothing. Default: 5
    /// attempts, exponential back-off with jitter from 1 s to 10 min.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.retry = policy;
        self
    }

    /// How tasks of a queue are tried again whose own and kind's policies say nothing.
    #[must_use]
    pub fn queue_retry(mut self, queue: impl Into<String>, policy: RetryPolicy) -> Self {
        self.names.queue_retry.push((queue.into(), policy));
        self
    }

    /// How long an attempt may take where neither the task nor its kind says so. Default: for ever.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// The queues from which this engine takes tasks. Default: all.
    #[must_use]
    pub fn queues<Q: Into<String>>(mut self, queues: impl IntoIterator<Item = Q>) -> Self {
        self.names.queues = Some(queues.into_iter().map(Into::into).collect());
        self
    }

    /// How this engine chooses among queues that have work for it, whatever the store's mode is.
    /// Default: as the store's mode says, which [`Engine::set_queue_mode`] changes while everything
    /// runs. Weights are the store's in any case.
    #[must_use]
    pub fn queue_mode(mut self, mode: QueueMode) -> Self {
        self.settings.queue_mode = Some(mode);
        self
    }

    /// How long a handler that was asked to stop may go on before it is aborted. Default: 5 s.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// How long what a handler left to [clean up](crate::Context::clean_up_with) may take. Default:
    /// 5 seconds. Zero: it is polled once.
    #[must_use]
    pub fn cleanup_limit(mut self, limit: Duration) -> Self {
        self.settings.cleanup_limit = limit;
        self
    }

    /// How long [`Engine::stop`] waits for running handlers before it asks them to stop. Default:
    /// 30 s.
    #[must_use]
    pub fn shutdown_limit(mut self, limit: Duration) -> Self {
        self.settings.shutdown_limit = limit;
        self
    }

    /// The most tasks claimed ahead of free slots, 0 to 65 536. Default: 4096. So many are claimed
    /// only while handlers are so fast that all of them start within two commits.
    #[must_use]
    pub fn prefetch(mut self, tasks: usize) -> Self {
        self.settings.prefetch = tasks;
        self
    }

    /// Accepts handlers of kinds that Onward keeps for itself. For the program `onward` alone.
    #[doc(hidden)]
    #[must_use]
    pub fn serves_reserved_kinds(mut self) -> Self {
        self.settings.serves_reserved = true;
        self
    }

    /// The name under which people see this engine's session. Default: `process` and the process's
    /// number.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Has running tasks give way to urgent ones where every slot is taken: the least urgent is
    /// asked to stop, aborted after its [grace](Self::grace), and given back when its handler is
    /// over, without the attempt being counted. Each task gives way at most
    /// [`bounds::PREEMPTIONS`](crate::bounds::PREEMPTIONS) times in one engine. Only for what would
    /// be claimed next: a task that a limit or a pause holds back, or that others precede,
    /// interrupts nothing. Default: nothing gives way.
    #[must_use]
    pub fn preemption(mut self, preemption: Preemption) -> Self {
        self.settings.preemption = Some(preemption);
        self
    }

    /// Adds something that says how high a pressure is; of several the highest counts. While it is
    /// high, the engine claims only what is urgent, as the [throttle](Self::throttle) says.
    /// Default: none.
    #[must_use]
    pub fn pressure_source(mut self, source: impl PressureSource) -> Self {
        self.settings.pressure.sources.push(Arc::new(source));
        self
    }

    /// How urgent a task must be to start under pressure. Default: [`Throttle::default`].
    #[must_use]
    pub fn throttle(mut self, throttle: Throttle) -> Self {
        self.settings.pressure.throttle = throttle;
        self
    }

    /// How many bytes a second this engine's tasks may move, at least 1: a source of pressure that
    /// is at 1.0 where they are two seconds ahead of it
    /// ([`bounds::BANDWIDTH_HORIZON`](crate::bounds::BANDWIDTH_HORIZON)). It counts what handlers
    /// record ([`Context::record_received`](crate::Context::record_received) and its like), and
    /// what tasks say that they will move ([`NewTask::io`](crate::NewTask::io)) from their start
    /// on. Default: any number.
    #[must_use]
    pub fn bandwidth(mut self, kind: IoKind, bytes_per_second: u64) -> Self {
        self.settings.pressure.set_bandwidth(kind, bytes_per_second);
        self
    }

    /// Forgets tasks this long after they have ended, with their results, errors and tags, while
    /// [`run`](Engine::run) goes on: looked for every
    /// [`RETENTION_INTERVAL`](crate::bounds::RETENTION_INTERVAL), the oldest first, in small
    /// writes; a task costs nothing for it when it ends. Of several engines on a store the shortest
    /// time counts. A task that says [how long it is kept itself](crate::NewTask::retention) is
    /// forgotten when that is over, and not before, whatever is said here. Default: for ever, or
    /// until somebody prunes the store.
    #[must_use]
    pub fn keep_ended_for(mut self, time: Duration) -> Self {
        self.settings.retention.age = Some(time);
        self
    }

    /// The same by number: of the tasks that have ended, and did not say themselves how long they
    /// are kept, only so many are kept, the newest.
    #[must_use]
    pub fn keep_ended(mut self, tasks: u64) -> Self {
        self.settings.retention.count = Some(tasks);
        self
    }

    /// Opens the store and the engine on it. Nothing runs yet.
    ///
    /// # Errors
    /// [`is_invalid`](crate::Error::is_invalid) for a setting out of its range, or none or two
    /// places to keep the work; what the store reports if it cannot be opened.
    pub async fn open(self) -> Result<Engine> {
        let mut settings = self.settings;
        settings.queues = self.names.queues.map(|queues| queues.iter().map(Name::new).collect()).transpose()?;
        for (queue, policy) in self.names.queue_retry {
            settings.queue_retry.insert(Name::new(queue)?, policy);
        }
        settings.check()?;
        let store = self.location.open().await?;
        let store = match self.codec {
            Some(codec) => Arc::new(CodecStore::new(store, codec)),
            None => store,
        };
        Ok(Engine::new(store, settings))
    }
}
