//! Opens an engine.

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

/// A builder that opens an [`Engine`] with other than the default settings.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), onward::Error> {
/// use std::time::Duration;
/// use onward::Engine;
///
/// let engine =
///     Engine::builder().memory().concurrency(16).timeout(Duration::from_secs(60)).open().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct EngineBuilder {
    location: StoreLocation,
    settings: Settings,
    names: Names,
    codec: Option<Arc<dyn PayloadCodec>>,
}

/// The names as they were given, not yet checked.
#[derive(Debug, Default)]
struct Names {
    queues: Option<Vec<String>>,
    queue_retry: Vec<(String, RetryPolicy)>,
}

impl EngineBuilder {
    pub(crate) fn new() -> Self {
        Self { location: StoreLocation::default(), settings: Settings::default(), names: Names::default(), codec: None }
    }

    /// Keeps tasks in a SQLite file, which is created if it does not exist.
    #[must_use]
    pub fn sqlite(mut self, path: impl Into<PathBuf>) -> Self {
        self.location.path = Some(path.into());
        self
    }

    /// Keeps tasks in a PostgreSQL database (15 or newer), which many processes on many machines
    /// may share: `postgres://user@host/database`. A `#schema` at the end names the schema of the
    /// tables; the default is `onward`.
    #[cfg(feature = "postgres")]
    #[must_use]
    pub fn postgres(mut self, url: impl Into<String>) -> Self {
        self.location.url = Some(url.into());
        self
    }

    /// Keeps tasks in a file or in a database, as [`Engine::open`] does.
    pub(crate) fn location(mut self, location: &Path) -> Self {
        self.location.set(location);
        self
    }

    /// Keeps tasks in memory, for tests: nothing survives the process.
    #[must_use]
    pub fn memory(mut self) -> Self {
        self.location.memory = true;
        self
    }

    /// Keeps tasks in a store that is already open, which other engines may share.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.location.store = Some(store);
        self
    }

    /// Sets the durability level of an acknowledgement; for [`sqlite`](Self::sqlite) and
    /// `postgres`. Default: an acknowledged write survives power loss.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.location.durability = Some(durability);
        self
    }

    /// Sets the largest payload or result, in bytes; for [`sqlite`](Self::sqlite), `postgres` and
    /// [`memory`](Self::memory). Building the engine fails with more than 256 MiB. Default: 1 MiB.
    #[must_use]
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.location.payload_limit = Some(bytes);
        self
    }

    /// Sets the clock; for [`sqlite`](Self::sqlite), `postgres` and [`memory`](Self::memory).
    /// Default: the machine's clock, and with `postgres` the server's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.location.clock = Some(clock);
        self
    }

    /// Sets the number of handlers that run at once, 1 to 100 000. Default: four per core.
    #[must_use]
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.settings.concurrency = handlers;
        self
    }

    /// Starts tasks only within the credit that [`Engine::grant`] grants while the engine runs, for
    /// handlers that pass tasks to another process. Default: every free slot may start a task.
    ///
    /// The credit limits handlers in addition to [`concurrency`](Self::concurrency), and a failed
    /// task that is retried at once waits in its queue for a claim within the credit.
    #[must_use]
    pub fn on_credit(mut self) -> Self {
        self.settings.on_credit = true;
        self.settings.prefetch = 0;
        self
    }

    /// Sets the number of turns of orchestrations that run at once, including their steps. Handlers
    /// of tasks are counted separately. If turns are short, more are claimed ahead and wait for a
    /// moment. From 1 to [`bounds::TURNS`](crate::bounds::TURNS); default: 256.
    #[must_use]
    pub fn turns(mut self, turns: usize) -> Self {
        self.settings.turns = turns;
        self
    }

    /// Sets the number of orchestrations that stay in memory between their turns, so that a message
    /// to one needs no replay of its history. Beyond it the engine evicts those whose last turn is
    /// oldest. Up to [`bounds::ORCHESTRATIONS_CACHED`](crate::bounds::ORCHESTRATIONS_CACHED);
    /// default: 10 000.
    #[must_use]
    pub fn orchestrations_cached(mut self, orchestrations: usize) -> Self {
        self.settings.orchestrations_cached = orchestrations;
        self
    }

    /// Sets the codec that encodes payloads, results and the data of orchestrations before they
    /// reach the store, for compression or encryption. Every program that uses the store needs the
    /// same codec. Default: no encoding.
    ///
    /// With a codec, transactions of handlers on the store's own connection are rejected.
    #[must_use]
    pub fn codec(mut self, codec: impl PayloadCodec) -> Self {
        self.codec = Some(Arc::new(codec));
        self
    }

    /// Sets the number of events that the history of an orchestration may have. An orchestration
    /// that exceeds it becomes a dead letter, and the log warns at half of it. The orchestration
    /// continues where it was when it is [retried](Engine::retry) under a higher limit, or with
    /// code that [continues as new](crate::orchestration::OrchestrationContext::continue_as_new).
    /// Default: 100 000.
    #[must_use]
    pub fn history_events(mut self, events: u64) -> Self {
        self.settings.history_events = events;
        self
    }

    /// Sets the number of bytes that the history of an orchestration may have, in the same way.
    /// Default: 64 MiB.
    #[must_use]
    pub fn history_bytes(mut self, bytes: u64) -> Self {
        self.settings.history_bytes = bytes;
        self
    }

    /// Sets the number of events that the history of a workflow run may have. A run that exceeds it
    /// becomes a dead letter, and signals to it are refused. It continues where it was when it is
    /// retried under a higher limit. A step, and an item of a step, has about three events.
    /// Default: 1 000 000.
    #[must_use]
    pub fn run_history_events(mut self, events: u64) -> Self {
        self.settings.run_history_events = events;
        self
    }

    /// Sets the number of bytes that the history of a workflow run may have, in the same way.
    /// Default: 256 MiB.
    #[must_use]
    pub fn run_history_bytes(mut self, bytes: u64) -> Self {
        self.settings.run_history_bytes = bytes;
        self
    }

    /// Sets how long claimed tasks stay with this engine without a renewal: the tasks of a crashed
    /// process are taken over after this time. 100 ms to 24 h; default 10 s. The engine renews its
    /// lease after a third of it.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// Sets the retry policy of tasks for which the task, its kind and its queue set none. Default:
    /// 5 attempts, exponential back-off with jitter from 1 s to 10 min.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.retry = policy;
        self
    }

    /// Sets the retry policy of a queue's tasks for which the task and its kind set none.
    #[must_use]
    pub fn queue_retry(mut self, queue: impl Into<String>, policy: RetryPolicy) -> Self {
        self.names.queue_retry.push((queue.into(), policy));
        self
    }

    /// Sets the timeout of an attempt if neither the task nor its kind sets one. Default: none.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// Sets the queues from which this engine takes tasks. Default: all.
    #[must_use]
    pub fn queues<Q: Into<String>>(mut self, queues: impl IntoIterator<Item = Q>) -> Self {
        self.names.queues = Some(queues.into_iter().map(Into::into).collect());
        self
    }

    /// Sets how this engine chooses among queues with work for it, whatever the store's mode is.
    /// Default: the store's mode, which [`Engine::set_queue_mode`] changes at run time. Weights
    /// always come from the store.
    #[must_use]
    pub fn queue_mode(mut self, mode: QueueMode) -> Self {
        self.settings.queue_mode = Some(mode);
        self
    }

    /// Sets how long a handler may run after it was asked to stop, before it is aborted. Default: 5
    /// s.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// Sets how long the [clean-up](crate::Context::clean_up_with) of a handler may take. Default:
    /// 5 seconds. Zero: it is polled once.
    #[must_use]
    pub fn cleanup_limit(mut self, limit: Duration) -> Self {
        self.settings.cleanup_limit = limit;
        self
    }

    /// Sets how long [`Engine::stop`] waits for running handlers before it asks them to stop.
    /// Default: 30 s.
    #[must_use]
    pub fn shutdown_limit(mut self, limit: Duration) -> Self {
        self.settings.shutdown_limit = limit;
        self
    }

    /// Sets the largest number of tasks claimed ahead of free slots, 0 to 65 536. Default: 4096.
    /// The engine claims that many only while handlers are so fast that all of them start within
    /// two commits.
    #[must_use]
    pub fn prefetch(mut self, tasks: usize) -> Self {
        self.settings.prefetch = tasks;
        self
    }

    /// Runs the workflows of the store, whether or not this program [adds](Engine::add_workflow)
    /// their templates. Default: an engine to which no template was added leaves runs to others.
    #[must_use]
    pub fn runs_workflows(mut self) -> Self {
        self.settings.runs_workflows = true;
        self
    }

    /// Accepts handlers of kinds that Onward reserves. Only for the program `onward`.
    #[doc(hidden)]
    #[must_use]
    pub fn serves_reserved_kinds(mut self) -> Self {
        self.settings.serves_reserved = true;
        self
    }

    /// Sets the name of this engine's session in listings. Default: `process` and the process id.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Preempts running tasks for urgent ones while every slot is taken. The least urgent task is
    /// asked to stop, aborted after its [grace](Self::grace), and released when its handler has
    /// ended, without counting the attempt. One engine preempts a task at most
    /// [`bounds::PREEMPTIONS`](crate::bounds::PREEMPTIONS) times. Only the task that would be
    /// claimed next preempts: a task that a limit or a pause holds back, or that others precede,
    /// interrupts nothing. Default: no preemption.
    #[must_use]
    pub fn preemption(mut self, preemption: Preemption) -> Self {
        self.settings.preemption = Some(preemption);
        self
    }

    /// Adds a source of pressure. With several sources the highest pressure counts. Under high
    /// pressure the engine claims only urgent tasks, as the [throttle](Self::throttle) sets.
    /// Default: none.
    #[must_use]
    pub fn pressure_source(mut self, source: impl PressureSource) -> Self {
        self.settings.pressure.sources.push(Arc::new(source));
        self
    }

    /// Sets how urgent a task must be to start under pressure. Default: [`Throttle::default`].
    #[must_use]
    pub fn throttle(mut self, throttle: Throttle) -> Self {
        self.settings.pressure.throttle = throttle;
        self
    }

    /// Limits the bytes a second that this engine's tasks move, at least 1. The limit is a source
    /// of pressure that reaches 1.0 when tasks are two seconds ahead of it
    /// ([`bounds::BANDWIDTH_HORIZON`](crate::bounds::BANDWIDTH_HORIZON)). It counts the bytes that
    /// handlers record ([`Context::record_received`](crate::Context::record_received) and similar),
    /// and from a task's start the bytes that the task expects to move
    /// ([`NewTask::io`](crate::NewTask::io)). Default: unlimited.
    #[must_use]
    pub fn bandwidth(mut self, kind: IoKind, bytes_per_second: u64) -> Self {
        self.settings.pressure.set_bandwidth(kind, bytes_per_second);
        self
    }

    /// Forgets tasks this long after they have ended, with their results, errors and tags.
    ///
    /// [`run`](Engine::run) looks for such tasks every
    /// [`RETENTION_INTERVAL`](crate::bounds::RETENTION_INTERVAL) and forgets the oldest first, in
    /// small writes; ending a task costs nothing more. If several engines share a store, the
    /// shortest time counts. A task with [its own retention](crate::NewTask::retention) is
    /// forgotten when that is over and not before, regardless of this setting. Default: ended tasks
    /// are kept until the store is pruned.
    #[must_use]
    pub fn keep_ended_for(mut self, time: Duration) -> Self {
        self.settings.retention.age = Some(time);
        self
    }

    /// Limits the number of ended tasks that are kept, in the same way. The newest are kept; tasks
    /// with their own retention do not count.
    #[must_use]
    pub fn keep_ended(mut self, tasks: u64) -> Self {
        self.settings.retention.count = Some(tasks);
        self
    }

    /// Opens the store and the engine on it. Nothing runs yet.
    ///
    /// # Errors
    /// [`is_invalid`](crate::Error::is_invalid) for a setting out of its range, or if no store or
    /// several were named; the store's error if it cannot be opened.
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
