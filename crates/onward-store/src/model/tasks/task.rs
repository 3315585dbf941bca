//! The stored state of one task.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::api::io::Io;
use crate::api::name::Name;
use crate::api::orchestration::{Hold, Instance};
use crate::api::result::TaskResult;
use crate::api::task::{AttemptError, ClaimedTask, Lease, NewTask, Progress, SessionId, TaskId, TaskRecord, TaskState};
use crate::api::timestamp::Timestamp;
use crate::model::attempts::external_completion::AwaitedCompletion;
use crate::model::attempts::output::Output;
use crate::rules;
use crate::rules::order::{SortKey, sort_key};

/// The stored state of a task, live or ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    /// The task as it was submitted. Only its priority and its queue change, and the policy for
    /// failed dependencies when it awaits its children.
    pub(crate) new: NewTask,
    pub(crate) state: TaskState,
    pub(crate) submitted_at: Timestamp,
    pub(crate) run_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    /// The expiry that a release of the current claim restores.
    pub(crate) expiry_before_claim: Option<Timestamp>,
    /// The attempts used up, not including a running one.
    pub(crate) attempts: u32,
    /// The number of claims of the task. It is the claim number of the current lease, and so the
    /// fence.
    pub(crate) claims: u32,
    /// The number of leases lost in a row.
    pub(crate) lost: u32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
    /// The session that runs the task; set if, and only if, it is running.
    pub(crate) session: Option<SessionId>,
    pub(crate) cancel_requested: bool,
    pub(crate) result: Option<Bytes>,
    pub(crate) errors: Vec<AttemptError>,
    pub(crate) progress: Option<Progress>,
    /// The I/O that an attempt reported.
    pub(crate) io: Option<Io>,
    /// The output of the last attempt that wrote any.
    pub(crate) output: Option<Arc<Output>>,
    /// The checkpoint that the last attempt saved for the next one.
    pub(crate) checkpoint: Option<Bytes>,
    /// Set while the task is blocked for external completion.
    pub(crate) awaited: Option<AwaitedCompletion>,
    /// The queue to which the task moves after its attempt, unless it ends.
    pub(crate) move_to: Option<Name>,
    /// The number of items, if the task is a batch.
    pub(crate) items: u32,
    /// The task that is inserted when this one ends.
    pub(crate) follower: Option<Box<NewTask>>,
    /// Set if, and only if, the task is an orchestration.
    pub(crate) instance: Option<Arc<Instance>>,
    /// Set if, and only if, the task has ended.
    pub(crate) end: Option<End>,
}

/// The position of a task's end among all ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End {
    /// The number of tasks that had ended, including this one.
    pub(crate) number: u64,
    /// The entry of the log that records the end.
    pub(crate) entry: i64,
}

impl Task {
    /// Returns a task as a submit inserts it, before its dependencies are looked up. A task that is
    /// collected into a batch is blocked from the start.
    pub(crate) fn submitted(id: TaskId, new: NewTask, now: Timestamp) -> Self {
        let run_at = rules::due::run_at(new.when, now);
        Self {
            id,
            state: if new.aggregate.is_some() { TaskState::Blocked } else { rules::due::state(run_at, now) },
            submitted_at: now,
            run_at,
            expires_at: rules::attempt::expiry_at_submission(new.ttl, new.deadline, now),
            expiry_before_claim: None,
            instance: new.orchestration.then(Arc::default),
            new,
            attempts: 0,
            claims: 0,
            lost: 0,
            started_at: None,
            finished_at: None,
            session: None,
            cancel_requested: false,
            result: None,
            errors: Vec::new(),
            progress: None,
            io: None,
            output: None,
            checkpoint: None,
            awaited: None,
            move_to: None,
            items: 0,
            follower: None,
            end: None,
        }
    }

    /// Returns whether the task only keeps signals for its key until an orchestration starts.
    pub(in crate::model) fn is_unstarted(&self) -> bool {
        self.instance.as_ref().is_some_and(|instance| instance.hold == Hold::Unstarted)
    }

    /// Returns the number of the running attempt, or of the next one.
    pub(in crate::model) fn attempt(&self) -> u32 {
        self.attempts.saturating_add(1)
    }

    /// Returns the lease under which the task runs.
    pub(in crate::model) fn lease(&self) -> Option<Lease> {
        self.session.map(|session| Lease { task: self.id, session, claim: self.claims })
    }

    /// Returns whether the task's expiry has passed.
    pub(in crate::model) fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Begins an attempt under a new lease.
    pub(in crate::model) fn start(&mut self, session: SessionId, now: Timestamp) {
        self.state = TaskState::Running;
        self.session = Some(session);
        self.claims = self.claims.saturating_add(1);
        self.started_at = Some(now);
        self.expiry_before_claim = self.expires_at;
        self.expires_at = rules::attempt::expiry_at_start(self.new.ttl, self.new.deadline, self.expires_at, now);
    }

    /// Returns the latest time for the external completion that the task awaits.
    pub(crate) fn completion_deadline(&self) -> Option<Timestamp> {
        self.awaited.and_then(|awaited| awaited.until)
    }

    /// Returns the end of the task's own retention, if it has ended and has one.
    pub(crate) fn retained_until(&self) -> Option<Timestamp> {
        self.end?;
        Some(rules::prune::retained_until(self.finished_at?, self.new.retention?))
    }

    /// Makes the task wait for `run_at`; it is due at once if that has passed.
    pub(in crate::model) fn wait_for(&mut self, run_at: Timestamp, now: Timestamp) {
        self.state = rules::due::state(run_at, now);
        self.session = None;
        // A task that is due at once keeps its sort key.
        if self.state == TaskState::Scheduled {
            self.run_at = run_at;
        }
    }

    /// Adds an error of the running attempt.
    pub(in crate::model) fn push_error(&mut self, now: Timestamp, message: String) {
        let attempt = self.attempt();
        rules::errors::push(&mut self.errors, attempt, now, message);
    }

    /// Adds an error that belongs to no attempt.
    pub(in crate::model) fn push_error_between(&mut self, now: Timestamp, message: String) {
        let attempts = self.attempts;
        rules::errors::push(&mut self.errors, attempts, now, message);
    }

    /// Makes a blocked task waiting, or scheduled if it is not due.
    pub(in crate::model) fn unblock(&mut self, now: Timestamp) {
        self.run_at = self.run_at.max(now);
        self.state = rules::due::state(self.run_at, now);
    }

    /// Returns how long the attempt that ended at `finished_at` waited for a claim, and how long it
    /// ran.
    pub(in crate::model) fn times(&self, finished_at: Timestamp) -> (Duration, Duration) {
        let started_at = self.started_at.unwrap_or(finished_at);
        (started_at - self.run_at, finished_at - started_at)
    }

    /// Returns the sort key of the task among waiting tasks.
    pub(crate) fn sort_key(&self) -> SortKey {
        sort_key(self.new.priority, self.run_at, self.id)
    }

    /// Returns the task as a worker receives it.
    pub(in crate::model) fn claimed(&self, lease: Lease, weight: u32) -> ClaimedTask {
        ClaimedTask {
            lease,
            kind: self.new.kind.clone(),
            queue: self.new.queue.clone(),
            group: self.new.group.clone(),
            weight,
            payload: self.new.payload.clone(),
            priority: self.new.priority,
            attempt: self.attempt(),
            submitted_at: self.submitted_at,
            run_at: self.run_at,
            timeout: self.new.timeout,
            heartbeat_timeout: self.new.heartbeat_timeout,
            deadline: self.new.deadline,
            retention: self.new.retention,
            retry: self.new.retry,
            scheduled_at: self.new.scheduled_at,
            tags: self.new.tags.clone(),
            ttl: self.new.ttl,
            parent: self.new.parent,
            report: self.new.report,
            checkpoint: self.checkpoint.clone(),
            expected_io: self.new.io,
            items: self.items,
            instance: self.instance.as_ref().map(|instance| Box::new(instance.claimed())),
        }
    }

    /// Returns the task as a reader receives it.
    pub(in crate::model) fn record(&self, with_payload: bool) -> TaskRecord {
        TaskRecord {
            id: self.id,
            kind: self.new.kind.clone(),
            queue: self.new.queue.clone(),
            group: self.new.group.clone(),
            state: self.state,
            priority: self.new.priority,
            payload: with_payload.then(|| self.new.payload.clone()),
            key: self.new.unique.as_ref().map(|unique| unique.key.clone()),
            submitted_at: self.submitted_at,
            run_at: self.run_at,
            expires_at: self.expires_at,
            attempts: if self.session.is_some() { self.attempt() } else { self.attempts },
            started_at: self.started_at,
            finished_at: self.finished_at,
            session: self.session,
            cancel_requested: self.cancel_requested,
            result: TaskResult::shown(with_payload, || self.result.clone()),
            errors: self.errors.clone(),
            progress: self.progress.clone(),
            tags: self.new.tags.clone(),
            blocked_by: Vec::new(),
            parent: self.new.parent,
            expected_io: self.new.io,
            io: self.io,
            aggregate: self.new.aggregate,
            batch: None,
            items: self.items,
            affinity: self.new.affinity.clone(),
            orchestration: self.new.orchestration,
            report: self.new.report,
            keep_key_for: self.new.unique.as_ref().map_or(Duration::ZERO, |unique| unique.keep_for),
            ttl: self.new.ttl,
            timeout: self.new.timeout,
            heartbeat_timeout: self.new.heartbeat_timeout,
            deadline: self.new.deadline,
            retention: self.new.retention,
            retry: self.new.retry,
            scheduled_at: self.new.scheduled_at,
        }
    }
}
