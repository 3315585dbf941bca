//! What a handler is given beside its payload.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use onward_store::{
    Io, IoKind, Name, Page, Priority, StoreReads, Tags, TaskFilter, TaskId, TaskRecord, Timestamp, bounds,
};
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, Interruption};
use super::failure::Failure;
use crate::engine::{Engine, Run};
use crate::error::Result;

/// One attempt at a task, as its handler sees it. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) run: Arc<Run>,
}

impl Context {
    /// The task's number.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.attempt.id()
    }

    /// The task's kind.
    #[must_use]
    pub fn kind(&self) -> &Name {
        &self.attempt.task.kind
    }

    /// Its group.
    #[must_use]
    pub fn group(&self) -> Option<&Name> {
        self.attempt.task.group.as_ref()
    }

    /// The queue it was in.
    #[must_use]
    pub fn queue(&self) -> &Name {
        &self.attempt.task.queue
    }

    /// How urgent it is.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.attempt.task.priority
    }

    /// Which attempt this is, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt.task.attempt
    }

    /// What the submitter gave; empty for a bundle, whose [members](Self::members) have payloads of
    /// their own.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.attempt.task.payload
    }

    /// The tags that the submitter gave it.
    #[must_use]
    pub fn tags(&self) -> &Tags {
        &self.attempt.task.tags
    }

    /// When the store accepted the task.
    #[must_use]
    pub fn submitted_at(&self) -> Timestamp {
        self.attempt.task.submitted_at
    }

    /// The moment of the schedule's firing that submitted the task, in the schedule's terms:
    /// without jitter, and the one that was meant even if it fired late. `None` for a task of no
    /// schedule.
    #[must_use]
    pub fn scheduled_at(&self) -> Option<Timestamp> {
        self.attempt.task.scheduled_at
    }

    /// The moment that the submitter set for the end of every attempt.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.attempt.task.deadline
    }

    /// The value of type `T` that the handler's [module](crate::Module) was given, or else
    /// [`Engine::state`].
    ///
    /// # Errors
    /// A permanent failure that names the type, if the engine was given none before it ran.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, Failure> {
        let handler = self.run.handlers.get(self.kind());
        let own = handler.and_then(|handler| handler.state.as_ref()?.get());
        own.or_else(|| self.run.app_state.get()).ok_or_else(|| {
            let name = std::any::type_name::<T>();
            Failure::permanent(format!(
                "the engine has no state of type `{name}`; give it one with `engine.state(…)` before it runs"
            ))
        })
    }

    /// The engine that runs this attempt, to submit further tasks with. Prefer it to an engine kept
    /// by the handler's closure, which would keep itself and its store open for ever; what has no
    /// context keeps a [`WeakEngine`](crate::WeakEngine).
    #[must_use]
    pub fn engine(&self) -> Engine {
        Engine::of(Arc::clone(&self.run.inner))
    }

    /// Whether the attempt should stop: somebody asked for the task's cancellation, its time is
    /// over, its lease is lost, more urgent work waits, or the engine stops. What the handler still
    /// answers within the grace period counts.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.attempt.interruption().is_some()
    }

    /// Why the attempt should stop, if it should.
    #[must_use]
    pub fn interruption(&self) -> Option<Interruption> {
        self.attempt.interruption()
    }

    /// A token that is cancelled when the attempt should stop, to be awaited or handed on.
    #[must_use]
    pub fn cancelled(&self) -> CancellationToken {
        self.attempt.token().clone()
    }

    /// Leaves something to be run if this attempt is stopped: when it was asked to stop, for
    /// whatever reason, and the handler has answered an error since, or was aborted after its
    /// grace. It does not run when the handler completes, or fails by itself. What was left before
    /// is replaced.
    ///
    /// The task stays this attempt's meanwhile: nobody starts another one (unless the lease was
    /// lost). It is aborted after the [cleanup limit](crate::EngineBuilder::cleanup_limit); a panic
    /// in it is logged. It does not run if the process dies.
    ///
    /// ```
    /// # use onward::{Context, Failure};
    /// async fn convert(context: Context) -> Result<(), Failure> {
    ///     let part = format!("/tmp/{}.part", context.id());
    ///     let unfinished = part.clone();
    ///     context.clean_up_with(async move {
    ///         let _ = std::fs::remove_file(unfinished);
    ///     });
    ///     std::fs::write(&part, context.payload())?;
    ///     context.cancelled().cancelled().await;
    ///     Ok(())
    /// }
    /// ```
    pub fn clean_up_with(&self, cleanup: impl Future<Output = ()> + Send + 'static) {
        self.attempt.cleanup.set(Box::pin(cleanup));
    }

    /// Says how far the task is, from 0.0 to 1.0 (clamped; not a number means unknown).
    ///
    /// Costs a few nanoseconds, takes no lock and waits for nothing; only what is the first since
    /// progress was last saved, about once a second, wakes the engine, for which tokio's `Notify`
    /// may take its own. [`Engine::snapshot`] shows the newest value at once; the store gets it
    /// about once a second while work goes on, and with the end of the attempt.
    pub fn progress(&self, fraction: f32) {
        self.heartbeat();
        self.attempt.progress.set_fraction(fraction);
        self.run.state.progressed();
    }

    /// Says how many bytes are done, and of how many if that is known: `progress_bytes(done,
    /// total)`, `progress_bytes(done, None)`. The rate and the time left are reckoned from it, and
    /// the fraction too unless [`progress`](Self::progress) says it. Say it once before the first
    /// byte if work goes on where an earlier attempt stopped: the rate counts from what was done
    /// then.
    ///
    /// Costs a few nanoseconds, takes no lock, as [`progress`](Self::progress), and reads no clock
    /// (but where a [heartbeat](Self::heartbeat) is waited for), so it may be called for every
    /// block that is copied.
    ///
    /// ```
    /// # use onward::{Context, Failure};
    /// async fn copy(context: Context) -> Result<(), Failure> {
    ///     let blocks = context.payload().chunks(4096);
    ///     let total = context.payload().len() as u64;
    ///     let mut done = 0;
    ///     for block in blocks {
    ///         done += block.len() as u64;
    ///         context.progress_bytes(done, total);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn progress_bytes(&self, done: u64, total: impl Into<Option<u64>>) {
        self.heartbeat();
        self.attempt.progress.set_bytes(done, total.into());
        self.run.state.progressed();
    }

    /// Says how far the task is and what it is doing; a message beyond 1024 bytes is cut.
    ///
    /// The fraction is told as by [`progress`](Self::progress), without a lock. The message takes
    /// one, this attempt's own, for as long as it takes to move the text in; whoever reads it (a
    /// snapshot, and what saves it about once a second) holds it for as long as it takes to copy
    /// the text. It never waits for the store. What is said for every block that is copied is
    /// better said without a message.
    pub fn progress_message(&self, fraction: f32, message: impl Into<String>) {
        self.attempt.progress.set_message(message.into());
        self.progress(fraction);
    }

    /// What the submitter said that an attempt would move.
    #[must_use]
    pub fn expected_io(&self) -> Io {
        self.attempt.task.expected_io
    }

    /// Counts bytes read from disk. Costs a few nanoseconds, as its like do. What an attempt has
    /// moved is kept with its end ([`TaskRecord::io`](crate::TaskRecord::io)) and counts for the
    /// engine's [bandwidth](crate::EngineBuilder::bandwidth) at once.
    pub fn record_read(&self, bytes: u64) {
        self.record(IoKind::DiskRead, bytes);
    }

    /// Counts bytes written to disk.
    pub fn record_written(&self, bytes: u64) {
        self.record(IoKind::DiskWritten, bytes);
    }

    /// Counts bytes received from the network.
    pub fn record_received(&self, bytes: u64) {
        self.record(IoKind::NetworkReceived, bytes);
    }

    /// Counts bytes sent to the network.
    pub fn record_sent(&self, bytes: u64) {
        self.record(IoKind::NetworkSent, bytes);
    }

    /// Every task that a filter selects, page by page, the oldest first.
    pub(crate) async fn all_tasks(&self, filter: TaskFilter) -> Result<Vec<TaskRecord>> {
        let (mut tasks, mut before) = (Vec::new(), None);
        loop {
            let page = self.run.inner.store.tasks(filter.clone(), Page { before, limit: bounds::PAGE }).await?;
            tasks.extend(page.tasks);
            before = page.next;
            if before.is_none() {
                tasks.reverse();
                return Ok(tasks);
            }
        }
    }

    fn record(&self, kind: IoKind, bytes: u64) {
        let before = self.attempt.io.add(kind, bytes);
        self.run.inner.gauge.bandwidth.moved(kind, self.attempt.task.expected_io.get(kind), before, bytes);
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = &self.attempt.task;
        f.debug_struct("Context")
            .field("id", &self.id())
            .field("kind", &task.kind)
            .field("queue", &task.queue)
            .field("attempt", &task.attempt)
            .finish_non_exhaustive()
    }
}
