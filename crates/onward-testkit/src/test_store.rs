//! A store under test, with a clock to move by hand and a short method for everything that a case
//! does with it.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    AfterFailure, Change, Claim, Claimed, ClaimedTask, Clock, Event, EventCursor, Failed, KindSelection, Lease,
    ManualClock, Name, NewTask, OnDuplicate, OpenSession, Outcome, Page, QueueRecord, QueueSelection, Refusal, Scope,
    SessionId, Store, StoreReads, Submitted, Swept, TaskFilter, TaskId, TaskRecord, TaskState, Timestamp, UniqueKey,
    Write,
};

use crate::fixture::{Conditions, Fixture, StoreLocation};

/// The lease of the sessions that [`TestStore::session`] opens.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

/// A store with the clock and the helpers of a test. Every method panics if the store returns an
/// error, or an outcome other than the one that the method's name promises.
#[derive(Debug)]
pub struct TestStore {
    store: Option<Arc<dyn Store>>,
    location: Box<dyn StoreLocation>,
    conditions: Conditions,
}

impl TestStore {
    /// Opens a new, empty store under the default [`Conditions`].
    pub async fn open(fixture: &(impl Fixture + ?Sized)) -> Self {
        Self::open_under(fixture, Conditions::default()).await
    }

    /// Opens a new, empty store.
    pub async fn open_under(fixture: &(impl Fixture + ?Sized), conditions: Conditions) -> Self {
        let mut location = fixture.location();
        let store = Some(location.open(&conditions).await);
        Self { store, location, conditions }
    }

    /// Closes the store and opens it again.
    pub async fn reopen(&mut self) {
        self.store = None;
        self.store = Some(self.location.open(&self.conditions).await);
    }

    /// Returns the store.
    #[must_use]
    pub fn inner(&self) -> &Arc<dyn Store> {
        self.store.as_ref().expect("the store is open but while it is being opened again")
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.conditions.clock
    }

    /// Returns the wall time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock().now()
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.clock().advance(by);
    }

    /// Returns the store's limit on payloads, in bytes.
    #[must_use]
    pub fn payload_limit(&self) -> usize {
        self.conditions.payload_limit
    }

    // Writes.

    /// Applies writes in one call.
    pub async fn apply(&self, writes: Vec<Write>) -> Vec<Outcome> {
        self.inner().apply(writes).await.expect("a store without faults makes writes durable")
    }

    /// Applies one write.
    pub async fn write(&self, write: Write) -> Outcome {
        let mut outcomes = self.apply(vec![write]).await;
        assert_eq!(outcomes.len(), 1, "one write has one outcome");
        outcomes.remove(0)
    }

    /// Applies a write whose outcome is `Done`.
    pub async fn done(&self, write: Write) {
        assert_eq!(self.write(write).await, Outcome::Done);
    }

    /// Applies a write that the store rejects, and returns the reason.
    pub async fn refused(&self, write: Write) -> Refusal {
        match self.write(write).await {
            Outcome::Refused(refusal) => refusal,
            other => panic!("it should have been refused: {other:?}"),
        }
    }

    /// Applies a write that every store rejects as invalid, and returns the text.
    pub async fn invalid(&self, write: Write) -> String {
        match self.refused(write).await {
            Refusal::Invalid(text) => text,
            other => panic!("it should have been invalid: {other:?}"),
        }
    }

    /// Submits an ordinary task of a kind and returns its number.
    pub async fn submit(&self, kind: &str) -> TaskId {
        self.submit_new(task(kind)).await
    }

    /// Submits a task that the store inserts, and returns its number.
    pub async fn submit_new(&self, new: NewTask) -> TaskId {
        match self.submitted(new).await {
            Submitted::Inserted { id } => id,
            other => panic!("it should have been inserted: {other:?}"),
        }
    }

    /// Submits a task and returns the result.
    pub async fn submitted(&self, new: NewTask) -> Submitted {
        match self.write(Write::Submit(Box::new(new))).await {
            Outcome::Submitted(submitted) => submitted,
            other => panic!("it should have been accepted: {other:?}"),
        }
    }

    /// Opens a session with a lease of ten seconds.
    pub async fn session(&self) -> SessionId {
        self.session_for(LEASE).await
    }

    /// Opens a session with this lease.
    pub async fn session_for(&self, lease: Duration) -> SessionId {
        match self.write(Write::OpenSession(OpenSession::new("test", lease))).await {
            Outcome::SessionOpened(session) => session,
            other => panic!("a session should have been opened: {other:?}"),
        }
    }

    /// Claims tasks of every kind from every queue.
    pub async fn claim(&self, session: SessionId, limit: usize) -> Vec<ClaimedTask> {
        self.claimed(all_of(session, limit)).await.tasks
    }

    /// Applies a claim and returns its result.
    pub async fn claimed(&self, claim: Claim) -> Claimed {
        match self.write(Write::Claim(claim)).await {
            Outcome::Claimed(claimed) => claimed,
            other => panic!("the claim should have returned its outcome: {other:?}"),
        }
    }

    /// Claims tasks of every kind from some queues, and returns their numbers.
    pub async fn claim_from(&self, session: SessionId, limit: usize, queues: &[(&str, usize)]) -> Vec<TaskId> {
        let queues = QueueSelection::Only(queues.iter().map(|(queue, limit)| (name(queue), *limit)).collect());
        numbers(&self.claimed(Claim { queues, ..all_of(session, limit) }).await.tasks)
    }

    /// Claims tasks of some kinds from every queue, and returns their numbers.
    pub async fn claim_kinds(&self, session: SessionId, limit: usize, kinds: &[&str]) -> Vec<TaskId> {
        let kinds = KindSelection::Only(kinds.iter().map(|kind| name(kind)).collect());
        numbers(&self.claimed(Claim { kinds, ..all_of(session, limit) }).await.tasks)
    }

    /// Claims up to 1000 waiting tasks of some kinds from every queue.
    pub async fn claim_kinds_tasks(&self, session: SessionId, kinds: &[&str]) -> Vec<ClaimedTask> {
        let kinds = KindSelection::Only(kinds.iter().map(|kind| name(kind)).collect());
        self.claimed(Claim { kinds, ..all_of(session, 1000) }).await.tasks
    }

    /// Claims as [`claim_kinds_tasks`](Self::claim_kinds_tasks) does, and returns the leases.
    pub async fn claim_kinds_leases(&self, session: SessionId, kinds: &[&str]) -> Vec<Lease> {
        self.claim_kinds_tasks(session, kinds).await.iter().map(|task| task.lease).collect()
    }

    /// Claims one task, which must exist.
    pub async fn claim_one(&self, session: SessionId) -> Lease {
        self.claim(session, 1).await.first().expect("there is something to claim").lease
    }

    /// Opens a session and claims one task with it.
    pub async fn start_one(&self) -> Lease {
        let session = self.session().await;
        self.claim_one(session).await
    }

    /// Submits a task and starts it in a session of its own.
    pub async fn running(&self, new: NewTask) -> Lease {
        let id = self.submitted(new).await.id();
        let lease = self.start_one().await;
        assert_eq!(lease.task, id, "nothing else was waiting");
        lease
    }

    /// Submits, starts and completes a task.
    pub async fn completed(&self, new: NewTask) -> TaskId {
        let lease = self.running(new).await;
        self.complete(lease).await;
        lease.task
    }

    /// Claims one task, which must exist, and completes it.
    pub async fn complete_next(&self) -> TaskId {
        let lease = self.start_one().await;
        self.complete(lease).await;
        lease.task
    }

    /// Completes a task without a result.
    pub async fn complete(&self, lease: Lease) {
        self.done(Write::Complete { lease, result: None }).await;
    }

    /// Ends an attempt with the error `oops`.
    pub async fn fail(&self, lease: Lease, next: AfterFailure) -> Failed {
        match self.write(Write::Fail { lease, error: "oops".into(), next }).await {
            Outcome::Failed(failed) => failed,
            other => panic!("the failure should have been taken: {other:?}"),
        }
    }

    /// Releases a task, which may start again after a delay.
    pub async fn release(&self, lease: Lease, after: Duration) {
        self.done(Write::Release { lease, after }).await;
    }

    /// Cancels a task, or requests its cancellation while it runs.
    pub async fn cancel(&self, task: TaskId) -> Outcome {
        self.write(Write::Cancel { task }).await
    }

    /// Retries an ended task.
    pub async fn retry(&self, task: TaskId) {
        self.done(Write::Retry { task }).await;
    }

    /// Pauses a scope.
    pub async fn pause(&self, scope: Scope, until: Option<Timestamp>) {
        self.done(Write::Pause { scope, until }).await;
    }

    /// Sweeps the store.
    pub async fn sweep(&self) -> Swept {
        match self.write(Write::Sweep).await {
            Outcome::Swept(swept) => swept,
            other => panic!("a sweep should have returned its outcome: {other:?}"),
        }
    }

    /// Removes tasks. Returns their number and whether there are more.
    pub async fn removed(&self, write: Write) -> (u64, bool) {
        match self.write(write).await {
            Outcome::Removed { tasks, more } => (tasks, more),
            other => panic!("tasks should have been removed: {other:?}"),
        }
    }

    /// Moves the clock past the lease of the open sessions, and sweeps.
    pub async fn lapse(&self) -> Swept {
        self.advance(LEASE);
        self.sweep().await
    }

    // Reads.

    /// Returns a task, which must exist.
    pub async fn record(&self, task: TaskId) -> TaskRecord {
        self.find(task).await.expect("the task is known")
    }

    /// Returns a task if it exists.
    pub async fn find(&self, task: TaskId) -> Option<TaskRecord> {
        self.inner().task(task).await.unwrap()
    }

    /// Returns the state of a task.
    pub async fn state(&self, task: TaskId) -> TaskState {
        self.record(task).await.state
    }

    /// Returns the numbers of the tasks that match a filter, newest first.
    pub async fn list(&self, filter: TaskFilter) -> Vec<TaskId> {
        let page = self.inner().tasks(filter, Page { before: None, limit: 1000 }).await.unwrap();
        page.tasks.iter().map(|task| task.id).collect()
    }

    /// Returns a queue if it exists.
    pub async fn queue(&self, queue: &str) -> Option<QueueRecord> {
        self.inner().queues().await.unwrap().into_iter().find(|record| record.name.as_str() == queue)
    }

    /// Returns every event so far, up to 1000.
    pub async fn events(&self) -> Vec<Event> {
        self.inner().events(EventCursor::START, 1000).await.unwrap().events
    }

    /// Returns the changes so far, without their times.
    pub async fn changes(&self) -> Vec<(TaskId, Change)> {
        self.events().await.into_iter().map(|event| (event.task, event.change)).collect()
    }
}

/// Returns a claim of any tasks.
pub(crate) fn all_of(session: SessionId, limit: usize) -> Claim {
    Claim::any(session, limit)
}

/// Returns a valid name.
pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("tests use valid names")
}

pub(crate) fn numbers(tasks: &[ClaimedTask]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.lease.task).collect()
}

/// Returns an ordinary task of a kind.
///
/// # Panics
/// Panics if `kind` is not a valid name.
#[must_use]
pub fn task(kind: &str) -> NewTask {
    NewTask::of(name(kind))
}

/// Returns a task of the kind `keyed` with a key.
#[must_use]
pub fn keyed(key: &str, on_duplicate: OnDuplicate) -> NewTask {
    let unique = Some(UniqueKey { key: key.into(), on_duplicate, keep_for: Duration::ZERO });
    NewTask { unique, ..task("keyed") }
}

/// Returns a retry after a delay. It uses an attempt and does not hold the task.
#[must_use]
pub fn after(delay: Duration) -> AfterFailure {
    AfterFailure::Retry { after: delay, uses_attempt: true, hold: false }
}
