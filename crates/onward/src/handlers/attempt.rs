//! One attempt at a task, from its claim to its end.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use onward_store::rules::order::{SortKey, sort_key};
use onward_store::{ClaimedTask, TaskId};
use tokio_util::sync::CancellationToken;

use super::checkpoint::Checkpoint;
use super::cleanup::Cleanup;
use super::end_report::EndListener;
use super::heartbeat::Heartbeat;
use super::live_output::LiveOutput;
use super::progress::LiveProgress;
use super::result_writer::WrittenResult;
use crate::observe::KindTelemetry;
use crate::pressure::LiveIo;
use crate::submit::Spawned;

/// An attempt that this engine holds: buffered, running, or ended and not yet durable.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) task: ClaimedTask,
    pub(crate) progress: LiveProgress,
    /// The output that is not saved yet.
    pub(crate) output: LiveOutput,
    pub(crate) heartbeat: Heartbeat,
    /// The bytes that the handler has moved.
    pub(crate) io: LiveIo,
    pub(crate) telemetry: Arc<KindTelemetry>,
    pub(crate) cleanup: Cleanup,
    /// The tasks that the handler has spawned.
    pub(crate) spawned: Spawned,
    /// The part of the result that the handler has written.
    pub(crate) result: WrittenResult,
    /// The checkpoint that the handler has kept for the next attempt.
    pub(crate) checkpoint: Checkpoint,
    /// The function that is called when the end is durable, or was dropped or refused.
    pub(crate) end_listener: EndListener,
    interruption: AtomicU8,
    started: AtomicU64,
    stop_at: AtomicU64,
    /// True once the end of the attempt is durable.
    finished: AtomicBool,
    /// Created on first use: most attempts end without ever needing a token.
    token: OnceLock<CancellationToken>,
}

/// The reason why an attempt should stop before its own end
/// ([`Context::interruption`](crate::Context::interruption)). The first reason stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Interruption {
    /// The task was cancelled.
    Cancelled = 1,
    /// The attempt exceeded its timeout.
    TimedOut = 2,
    /// The session lapsed: the store would reject the result.
    SessionLost = 3,
    /// The engine stops.
    ShuttingDown = 4,
    /// More urgent work waits for the slot ([`Preemption`](crate::limits::Preemption)). The task is
    /// released when the handler has ended.
    Preempted = 5,
    /// The handler missed its [heartbeat timeout](crate::Context::heartbeat).
    HeartbeatMissed = 6,
}

impl Interruption {
    fn from_code(code: u8) -> Option<Self> {
        use Interruption::{Cancelled, HeartbeatMissed, Preempted, SessionLost, ShuttingDown, TimedOut};
        let all = [Cancelled, TimedOut, SessionLost, ShuttingDown, Preempted, HeartbeatMissed];
        all.into_iter().find(|it| *it as u8 == code)
    }
}

impl Attempt {
    pub(crate) fn new(task: ClaimedTask, telemetry: Arc<KindTelemetry>) -> Self {
        Self {
            task,
            telemetry,
            progress: LiveProgress::default(),
            output: LiveOutput::default(),
            heartbeat: Heartbeat::default(),
            io: LiveIo::default(),
            cleanup: Cleanup::default(),
            spawned: Spawned::default(),
            result: WrittenResult::default(),
            checkpoint: Checkpoint::default(),
            end_listener: EndListener::default(),
            interruption: AtomicU8::new(0),
            started: AtomicU64::new(0),
            stop_at: AtomicU64::new(0),
            finished: AtomicBool::new(false),
            token: OnceLock::new(),
        }
    }

    pub(crate) fn id(&self) -> TaskId {
        self.task.lease.task
    }

    /// Returns the sort key of the start order if queues take no turns. It is the order of claims.
    pub(crate) fn order(&self) -> (Reverse<u32>, SortKey) {
        (Reverse(self.task.weight), sort_key(self.task.priority, self.task.run_at, self.id()))
    }

    /// Asks the handler to stop. The first reason stays.
    pub(crate) fn interrupt(&self, why: Interruption) {
        if self.interruption.compare_exchange(0, why as u8, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.token().cancel();
        }
    }

    pub(crate) fn interruption(&self) -> Option<Interruption> {
        Interruption::from_code(self.interruption.load(Ordering::Acquire))
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        self.token.get_or_init(CancellationToken::new)
    }

    /// Records that the handler has completed the task itself.
    pub(crate) fn mark_finished(&self) {
        self.finished.store(true, Ordering::Release);
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Records the start of the handler, in steady time.
    pub(crate) fn mark_started(&self, steady: Duration) {
        let microseconds = u64::try_from(steady.as_micros()).unwrap_or(u64::MAX);
        // Zero means that the handler has not started.
        self.started.store(microseconds.max(1), Ordering::Relaxed);
    }

    /// Sets the steady time at which the time of this attempt is over.
    pub(crate) fn set_stop_at(&self, steady: Duration) {
        let microseconds = u64::try_from(steady.as_micros()).unwrap_or(u64::MAX);
        // Zero means that there is no such time.
        self.stop_at.store(microseconds.max(1), Ordering::Relaxed);
    }

    /// Returns the steady time at which the time of this attempt is over, if it is limited.
    pub(crate) fn stop_at(&self) -> Option<Duration> {
        let microseconds = self.stop_at.load(Ordering::Relaxed);
        (microseconds > 0).then(|| Duration::from_micros(microseconds))
    }

    /// Returns the start of the handler in steady time, or `None` before it.
    pub(crate) fn started(&self) -> Option<Duration> {
        let microseconds = self.started.load(Ordering::Relaxed);
        (microseconds > 0).then(|| Duration::from_micros(microseconds))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use onward_store::{Lease, Name, Priority, SessionId, Timestamp};

    use super::*;
    use crate::observe::Telemetry;

    pub(crate) fn attempt(id: i64, priority: u8) -> Attempt {
        attempt_in("default", id, priority)
    }

    pub(crate) fn attempt_in(queue: &str, id: i64, priority: u8) -> Attempt {
        let task = ClaimedTask { queue: Name::new(queue).unwrap(), ..claimed(id, priority) };
        let telemetry = Telemetry::new().kind(&task.kind);
        Attempt::new(task, telemetry)
    }

    fn claimed(id: i64, priority: u8) -> ClaimedTask {
        ClaimedTask {
            lease: Lease { task: TaskId(id), session: SessionId(1), claim: 1 },
            kind: Name::new("test").unwrap(),
            queue: Name::default_queue(),
            group: None,
            weight: 1,
            payload: bytes::Bytes::new(),
            priority: Priority(priority),
            attempt: 1,
            submitted_at: Timestamp::from_microseconds(0),
            run_at: Timestamp::from_microseconds(0),
            timeout: None,
            heartbeat_timeout: None,
            deadline: None,
            retention: None,
            retry: None,
            scheduled_at: None,
            tags: onward_store::Tags::new(),
            ttl: None,
            parent: None,
            report: None,
            checkpoint: None,
            expected_io: onward_store::Io::default(),
            items: 0,
            instance: None,
        }
    }

    #[test]
    fn the_first_reason_to_stop_stays() {
        let attempt = attempt(1, 0);
        attempt.interrupt(Interruption::TimedOut);
        attempt.interrupt(Interruption::Cancelled);
        assert_eq!(attempt.interruption(), Some(Interruption::TimedOut));
        assert!(attempt.token().is_cancelled());
    }
}
