//! The context of a handler.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward_store::{
    Io, IoKind, Name, OutputStream, Page, Priority, StoreReads, Tags, TaskFilter, TaskId, TaskRecord, Timestamp, bounds,
};
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, Interruption};
use super::failure::Failure;
use crate::engine::{Engine, Run};
use crate::error::Result;

/// One attempt at a task, as its handler sees it. It is cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) run: Arc<Run>,
}

impl Context {
    /// Returns the id of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.attempt.id()
    }

    /// Returns the kind of the task.
    #[must_use]
    pub fn kind(&self) -> &Name {
        &self.attempt.task.kind
    }

    /// Returns the group of the task.
    #[must_use]
    pub fn group(&self) -> Option<&Name> {
        self.attempt.task.group.as_ref()
    }

    /// Returns the queue that the task was in.
    #[must_use]
    pub fn queue(&self) -> &Name {
        &self.attempt.task.queue
    }

    /// Returns the priority.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.attempt.task.priority
    }

    /// Returns the number of this attempt, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt.task.attempt
    }

    /// Returns the payload. It is empty for a batch, whose [items](Self::items) have their own
    /// payloads.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.attempt.task.payload
    }

    /// Returns the tags.
    #[must_use]
    pub fn tags(&self) -> &Tags {
        &self.attempt.task.tags
    }

    /// Returns the time at which the store accepted the task.
    #[must_use]
    pub fn submitted_at(&self) -> Timestamp {
        self.attempt.task.submitted_at
    }

    /// Returns the moment of the schedule's firing that submitted the task: the planned one,
    /// without jitter, even if it fired late. `None` for a task of no schedule.
    #[must_use]
    pub fn scheduled_at(&self) -> Option<Timestamp> {
        self.attempt.task.scheduled_at
    }

    /// Returns the deadline of every attempt.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.attempt.task.deadline
    }

    /// Returns the time until this attempt is stopped by its timeout or its deadline, or `None` if
    /// neither is set.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.attempt.stop_at().map(|at| at.saturating_sub(self.run.inner.clock.steady()))
    }

    /// Returns the value of type `T` of the handler's [module](crate::engine::Module), or else of
    /// [`Engine::state`].
    ///
    /// # Errors
    /// A permanent failure that names the type if the engine had none before it ran.
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

    /// Returns the engine that runs this attempt, for example to submit further tasks. Prefer it to
    /// an engine that the handler's closure owns, which would keep itself and its store open for
    /// ever. Code without a context keeps a [`WeakEngine`](crate::WeakEngine).
    #[must_use]
    pub fn engine(&self) -> Engine {
        Engine::of(Arc::clone(&self.run.inner))
    }

    /// Returns true if the attempt should stop: the task was cancelled, its time is over, its lease
    /// is lost, more urgent work waits, or the engine stops. A result that the handler returns
    /// within the grace period still counts.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.attempt.interruption().is_some()
    }

    /// Returns the reason why the attempt should stop, if it should.
    #[must_use]
    pub fn interruption(&self) -> Option<Interruption> {
        self.attempt.interruption()
    }

    /// Returns a token that is cancelled when the attempt should stop. It may be awaited or passed
    /// on.
    #[must_use]
    pub fn cancelled(&self) -> CancellationToken {
        self.attempt.token().clone()
    }

    /// Sets a future that runs if this attempt is stopped: when it was asked to stop, for whatever
    /// reason, and the handler has returned an error since, or was aborted after its grace. The
    /// future does not run when the handler completes, or fails by itself. A later call replaces
    /// it.
    ///
    /// This attempt keeps the task while the future runs, so no other attempt starts (unless the
    /// lease was lost). The future is aborted after the [cleanup
    /// limit](crate::EngineBuilder::cleanup_limit); a panic in it is logged. It does not run if the
    /// process dies.
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

    /// Sets the progress of the task, from 0.0 to 1.0. Other values are clamped; NaN means unknown.
    ///
    /// It costs a few nanoseconds, takes no lock and waits for nothing. Only the first call since
    /// progress was last saved, about once a second, wakes the engine; tokio's `Notify` may then
    /// take a lock of its own. [`Engine::snapshot`] shows the newest value at once. The store gets
    /// it about once a second during the attempt, and with its end.
    pub fn progress(&self, fraction: f32) {
        self.heartbeat();
        self.attempt.progress.set_fraction(fraction);
        self.run.state.progressed();
    }

    /// Sets the number of bytes done, and the total if it is known: `progress_bytes(done, total)`,
    /// `progress_bytes(done, None)`. The engine derives the rate and the remaining time from it,
    /// and also the fraction unless [`progress`](Self::progress) sets it. Call it once before the
    /// first byte if work continues where an earlier attempt stopped: the rate counts from that
    /// value.
    ///
    /// It costs a few nanoseconds and takes no lock, as [`progress`](Self::progress) does. It reads
    /// no clock (except with a [heartbeat timeout](Self::heartbeat)), so it may be called for every
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

    /// Sets the progress of the task and a message. A message beyond 1024 bytes is cut.
    ///
    /// The fraction is set as by [`progress`](Self::progress), without a lock. The message takes a
    /// lock of this attempt for as long as it takes to move the text in. A reader (a snapshot, and
    /// the engine that saves it about once a second) holds it for as long as it takes to copy the
    /// text. It never waits for the store. For every block that is copied, set the progress without
    /// a message.
    pub fn progress_message(&self, fraction: f32, message: impl Into<String>) {
        self.attempt.progress.set_message(message.into());
        self.progress(fraction);
    }

    /// Appends bytes to the output of the task. Readers see them while the task runs and after its
    /// end: `onward task follow` and [`StoreReads::task_output`].
    ///
    /// The bytes are copied to a buffer; the call waits for nothing. The engine saves the buffer
    /// about once a second, together with other writes, and with the end of the attempt. Of output
    /// that comes faster than [`bounds::OUTPUT_BUFFER_BYTES`](crate::bounds::OUTPUT_BUFFER_BYTES)
    /// between two saves the middle is dropped, as of the whole output beyond
    /// [`OUTPUT_BYTES`](onward_store::bounds::OUTPUT_BYTES). Output of the next attempt replaces
    /// that of this one. Output is no [heartbeat](Self::heartbeat).
    ///
    /// ```
    /// # use onward::task::OutputStream;
    /// # use onward::{Context, Failure};
    /// async fn convert(context: Context) -> Result<(), Failure> {
    ///     for page in 1..=3 {
    ///         context.output(OutputStream::Stdout, format!("page {page}\n"));
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn output(&self, stream: OutputStream, bytes: impl AsRef<[u8]>) {
        if self.attempt.output.append(stream, bytes.as_ref()) {
            self.run.state.progressed();
        }
    }

    /// Declares that the result of this attempt is its whole standard output, if it completes. The
    /// store then keeps these bytes once, as the result, and readers of the output receive them
    /// from there: a long output is not cut in its middle. A retry of the completed task removes
    /// its result, and with it this output.
    ///
    /// The declaration is ignored, with a warning in the log, where the engine sees that it is
    /// wrong. It is also ignored where the attempt [finishes](Self::finish) in a transaction of
    /// its own.
    ///
    /// ```
    /// # use onward::task::OutputStream;
    /// # use onward::{Context, Failure};
    /// async fn list(context: Context) -> Result<String, Failure> {
    ///     let lines = "one\ntwo\n".to_owned();
    ///     context.output(OutputStream::Stdout, &lines);
    ///     context.result_is_output();
    ///     Ok(lines)
    /// }
    /// ```
    pub fn result_is_output(&self) {
        self.attempt.output.declare_result();
    }

    /// Returns the bytes that the submitter expects an attempt to move.
    #[must_use]
    pub fn expected_io(&self) -> Io {
        self.attempt.task.expected_io
    }

    /// Counts bytes read from disk. This and its siblings cost a few nanoseconds. The store keeps
    /// the bytes of an attempt with its end ([`TaskRecord::io`](crate::TaskRecord::io)), and they
    /// count for the engine's [bandwidth](crate::EngineBuilder::bandwidth) at once.
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

    /// Returns every task that a filter selects, the oldest first.
    pub(crate) async fn all_tasks(&self, filter: TaskFilter) -> Result<Vec<TaskRecord>> {
        let (mut tasks, mut before) = (Vec::new(), None);
        loop {
            let page = self.run.inner.store.tasks(filter.clone(), Page { before, limit: bounds::PAGE }).await?;
            tasks.extend(page.tasks);
            before = page.next;
            if before.is_none() {
                // The store returns the newest first.
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
