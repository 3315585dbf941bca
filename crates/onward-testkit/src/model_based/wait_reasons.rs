//! Checks that the reasons which `why` states are exact.
#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and a long one says what it did"
)]

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use onward_store::{
    AfterTurn, Claim, ConcurrencyLimit, EventCursor, ExternalCompletion, KindSelection, Lease, OpenSession, Outcome,
    QueueSelection, RateLimit, Recipient, Served, ServedCode, SessionId, SessionRecord, SetLimit, Signal, StoreReads,
    TaskId, TaskRecord, TaskState, Timestamp, Turn, WaitReason, Write,
};
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::run::{STEPS, generator};
use super::sequence_state::SequenceState;
use super::steps::{Operation, Step};
use super::store_view::follow;
use super::strategies::sequences_with_orchestrations;
use crate::fixture::{Conditions, Fixture, is_missing};
use crate::soak;
use crate::test_store::{TestStore, name};

/// The most reasons removed one after another, or claims made, before the check gives up on a task.
const ROUNDS: usize = 100;

/// The greatest depth to which the check follows tasks that wait for each other.
const DEPTH: usize = 6;

/// More tasks than any sequence submits.
const MANY: usize = 1000;

/// The furthest that the clock is moved for one reason.
const LONGEST: Duration = Duration::from_secs(10 * 24 * 3600);

/// Generates stores and checks that `why` is exact for each waiting task in them. While a reason
/// holds, no claim takes the task. Once every reason is removed, by writes or by moving the clock,
/// a claim takes the task.
///
/// `ONWARD_SEQUENCES` overrides the number of stores, and `ONWARD_SEED` sets the random seed. A
/// failure names its seed.
///
/// # Panics
/// Panics if `why` states something false of a task, with the shortest sequence found that shows
/// it.
pub fn check_wait_reasons(fixture: &dyn Fixture, sequences: u64) {
    if is_missing(fixture) {
        return;
    }
    let (seed, sequences) = (soak::seed(), soak::number("ONWARD_SEQUENCES").unwrap_or(sequences));
    let config = Config {
        cases: u32::try_from(sequences).unwrap_or(u32::MAX),
        failure_persistence: None,
        max_shrink_iters: 1024,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    let mut runner = TestRunner::new_with_rng(config, generator(seed));
    let removed = std::cell::RefCell::new(BTreeMap::<&'static str, u64>::new());
    let result = runner.run(&sequences_with_orchestrations(STEPS), |steps| {
        let reasons = runtime.block_on(check_sequence(fixture, &steps));
        let reasons = reasons.map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
        reasons.into_iter().for_each(|reason| *removed.borrow_mut().entry(reason).or_default() += 1);
        Ok(())
    });
    println!("{:?}", removed.borrow());
    if let Err(wrong) = result {
        panic!("ONWARD_SEED={seed} ONWARD_SEQUENCES={sequences} shows a reason that is wrong\n{wrong}");
    }
}

/// A false statement of `why`.
#[derive(Debug)]
struct FalseReason {
    task: TaskId,
    what: String,
    /// The reasons that `why` stated for this task, one list for each call.
    stated: Vec<Vec<WaitReason>>,
}

impl fmt::Display for FalseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}: {}; the reasons stated were {:#?}", self.task, self.what, self.stated)
    }
}

/// The names of the reasons that were removed.
type Removed = Vec<&'static str>;

/// Runs a sequence, then checks the reasons of each task that waits at its end.
async fn check_sequence(fixture: &dyn Fixture, steps: &[Step]) -> Result<Removed, FalseReason> {
    let mut check = WaitReasonCheck::open(fixture).await;
    for step in steps {
        check.run_step(step).await;
    }
    check.store.sweep().await;
    for id in 1..=check.state.highest {
        check.stated.clear();
        check.check_reasons(TaskId(id)).await?;
        check.stated.clear();
        check.start(TaskId(id), 0).await?;
    }
    Ok(check.removed)
}

struct WaitReasonCheck {
    store: TestStore,
    state: SequenceState,
    cursor: EventCursor,
    stated: Vec<Vec<WaitReason>>,
    removed: Removed,
}

/// The result of an attempt to start a task.
enum Started {
    /// The task runs.
    Runs(Lease),
    /// The task ended on the way, or can never start.
    Over,
}

type Starting<'a> = Pin<Box<dyn Future<Output = Result<Started, FalseReason>> + 'a>>;

impl WaitReasonCheck {
    async fn open(fixture: &dyn Fixture) -> Self {
        let store = TestStore::open_under(fixture, Conditions { payload_limit: 32, ..Conditions::default() }).await;
        let (state, cursor) = (SequenceState::default(), EventCursor::START);
        Self { store, state, cursor, stated: Vec::new(), removed: Vec::new() }
    }

    async fn run_step(&mut self, step: &Step) {
        match step {
            Step::Apply(operations) => self.apply(operations).await,
            Step::Advance(by) => self.store.advance(*by),
            Step::SetBack(by) => self.store.clock().set_wall(self.store.now().minus(*by)),
            Step::Reopen => self.store.reopen().await,
        }
        let events = follow(&**self.store.inner(), &mut self.cursor, 1000).await.unwrap();
        let highest = events.iter().map(|(_, task, ..)| task.0).max();
        self.state.highest = self.state.highest.max(highest.unwrap_or(0));
        self.state.instances.clear();
        for id in (1..=self.state.highest).map(TaskId) {
            let instance = self.store.inner().instance(id).await.unwrap();
            instance.into_iter().for_each(|instance| drop(self.state.instances.insert(id, instance)));
        }
    }

    async fn apply(&mut self, operations: &[Operation]) {
        let now = self.store.now();
        let writes = operations.iter().map(|operation| self.state.write(operation, now)).collect();
        let outcomes = self.store.apply(writes).await;
        outcomes.iter().for_each(|outcome| self.state.remember(outcome));
    }

    async fn why(&mut self, task: TaskId) -> Vec<WaitReason> {
        let reasons = self.store.inner().why(task).await.unwrap().unwrap_or_default();
        self.stated.push(reasons.clone());
        reasons
    }

    fn false_reason(&mut self, task: TaskId, what: impl Into<String>) -> FalseReason {
        FalseReason { task, what: what.into(), stated: std::mem::take(&mut self.stated) }
    }

    async fn waits(&self, task: TaskId) -> Option<TaskRecord> {
        let record = self.store.find(task).await?;
        matches!(record.state, TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting).then_some(record)
    }

    /// Checks that no claim takes a task while a reason prevents its start. The lack of a worker
    /// and the task's position in its queue do not count as such reasons.
    async fn check_reasons(&mut self, task: TaskId) -> Result<(), FalseReason> {
        let Some(record) = self.waits(task).await else { return Ok(()) };
        let reasons = self.why(task).await;
        if !reasons.iter().any(prevents_start) {
            return Ok(());
        }
        let session = self.worker(&record, None).await;
        let taken = self.claim(session, &record).await;
        let is_taken = taken.iter().any(|lease| lease.task == task);
        self.store.done(Write::CloseSession { session }).await;
        if is_taken { Err(self.false_reason(task, "a claim takes it anyway")) } else { Ok(()) }
    }

    /// Removes the reasons that `why` states of a task until the task runs.
    fn start(&mut self, task: TaskId, depth: usize) -> Starting<'_> {
        Box::pin(async move {
            for _ in 0..ROUNDS {
                let Some(record) = self.waits(task).await else { return Ok(self.running(task).await) };
                let reasons = self.why(task).await;
                match reasons.iter().find(|reason| !matches!(reason, WaitReason::Expires { .. })) {
                    Some(_) if depth > DEPTH => return Ok(Started::Over),
                    Some(reason) => {
                        self.removed.push(reason_name(reason));
                        if !self.remove(&record, reason, depth).await? {
                            return Ok(Started::Over);
                        }
                        self.check_removed(task, reason).await?;
                    }
                    None => {
                        if let Some(lease) = self.claim_unblocked(&record).await? {
                            return Ok(Started::Runs(lease));
                        }
                    }
                }
            }
            Err(self.false_reason(task, "it does not start, whatever is removed"))
        })
    }

    /// Closes the session of a running task, so that the task loses its lease. Returns
    /// [`Started::Over`] for a task that does not wait.
    async fn running(&self, task: TaskId) -> Started {
        let Some(record) = self.store.find(task).await else { return Started::Over };
        let (Some(session), TaskState::Running) = (record.session, record.state) else { return Started::Over };
        self.store.write(Write::CloseSession { session }).await;
        Started::Over
    }

    /// Checks that `why` no longer states a removed reason, unless that kind of reason can return.
    /// After the time that a rate states there is a token, whatever the rate was before.
    async fn check_removed(&mut self, task: TaskId, removed: &WaitReason) -> Result<(), FalseReason> {
        let can_return = matches!(
            removed,
            WaitReason::Behind { .. } | WaitReason::Turn { .. } | WaitReason::Slot { .. } | WaitReason::Reserved { .. }
        );
        if can_return || self.waits(task).await.is_none() {
            return Ok(());
        }
        let reasons = self.why(task).await;
        let is_removed = |reason: &WaitReason| match (reason, removed) {
            (WaitReason::Rate { limit_on, .. }, WaitReason::Rate { limit_on: removed, .. }) => limit_on == removed,
            (reason, removed) => reason == removed,
        };
        if reasons.iter().any(is_removed) {
            Err(self.false_reason(task, format!("{removed:?} cannot be removed")))
        } else {
            Ok(())
        }
    }

    /// Claims a task for which `why` states no reason, with a worker that already exists. Every
    /// other claim is of all queues, and all are of all kinds. The claim takes the task.
    async fn claim_unblocked(&mut self, record: &TaskRecord) -> Result<Option<Lease>, FalseReason> {
        let version = self.version(record.id).await;
        let sessions = self.store.inner().sessions().await.unwrap();
        let serving = sessions.iter().filter(|session| serves(session, record, version));
        let Some(session) = serving.min_by_key(|session| session.running) else {
            return Err(self.false_reason(record.id, "no reason prevents its start, and no worker serves it"));
        };
        let own = QueueSelection::Only(vec![(record.queue.clone(), MANY)]);
        let queues = if record.id.0 % 2 == 0 { own } else { QueueSelection::All };
        let taken = self.claim_of(Claim { queues, ..Claim::any(session.id, MANY) }).await;
        if let Some(lease) = taken.iter().find(|lease| lease.task == record.id) {
            return Ok(Some(*lease));
        }
        if self.waits(record.id).await.is_none() {
            return Ok(None);
        }
        Err(self.false_reason(record.id, format!("no reason prevents its start, and a claim takes {taken:?}")))
    }

    async fn version(&self, task: TaskId) -> Option<u32> {
        self.store.inner().instance(task).await.unwrap().and_then(|instance| instance.version)
    }

    /// Claims as many tasks of this task's queue and kind as there are.
    async fn claim(&self, session: SessionId, record: &TaskRecord) -> Vec<Lease> {
        let queues = QueueSelection::Only(vec![(record.queue.clone(), MANY)]);
        let kinds = KindSelection::Only(vec![record.kind.clone()]);
        self.claim_of(Claim { queues, kinds, ..Claim::any(session, MANY) }).await
    }

    async fn claim_of(&self, claim: Claim) -> Vec<Lease> {
        let claimed = self.store.claimed(claim).await;
        claimed.tasks.iter().map(|task| task.lease).collect()
    }

    async fn end(&self, lease: Lease) {
        let instance = self.store.inner().instance(lease.task).await.unwrap();
        let write = match instance {
            None => Write::Complete { lease, result: None },
            Some(instance) => {
                let end = Turn::new(lease, instance.length, AfterTurn::Complete { result: None });
                Write::Turn(Box::new(Turn { leaves_unread: true, ..end }))
            }
        };
        self.store.write(write).await;
    }

    /// Opens the session of a worker that serves a task.
    async fn worker(&self, record: &TaskRecord, version: Option<u32>) -> SessionId {
        let version = version.unwrap_or_default();
        let code = ServedCode { kind: record.kind.clone(), since: version, version };
        let kinds = KindSelection::Only(vec![record.kind.clone()]);
        let serves = Served { queues: Some(vec![record.queue.clone()]), kinds, code: Some(vec![code]) };
        let lease = Duration::from_secs(24 * 3600);
        let open = OpenSession { serves, ..OpenSession::new("removed", lease) };
        match self.store.write(Write::OpenSession(open)).await {
            Outcome::SessionOpened(session) => session,
            other => panic!("a session should have been opened: {other:?}"),
        }
    }

    fn wait_until(&self, at: Timestamp) -> bool {
        let wait = if at > self.store.now() { at - self.store.now() } else { Duration::ZERO };
        self.store.advance(wait.min(LONGEST));
        wait <= LONGEST
    }

    /// Removes a reason. Returns false if that is impossible: a task that is due at the end of time
    /// never becomes due.
    async fn remove(&mut self, record: &TaskRecord, reason: &WaitReason, depth: usize) -> Result<bool, FalseReason> {
        let task = record.id;
        match reason {
            // A turn without events parked the orchestration. The engine never writes such a turn.
            WaitReason::Blocked { by } if by.is_empty() && record.orchestration => return Ok(false),
            WaitReason::Blocked { by } => self.end_all(by, depth).await?,
            WaitReason::Behind { .. } | WaitReason::Turn { .. } => return self.run_tasks_before(record).await,
            WaitReason::NoWorker
            | WaitReason::NotServed { .. }
            | WaitReason::NoCode { .. }
            | WaitReason::Slot { .. } => {
                let version = self.version(task).await;
                self.worker(record, version).await;
            }
            WaitReason::PendingBatch { ready_at, .. } => {
                let is_ready = self.wait_until(*ready_at);
                self.store.sweep().await;
                return Ok(is_ready);
            }
            WaitReason::InBatch { batch } => {
                if let Started::Runs(lease) = self.start(*batch, depth + 1).await? {
                    self.end(lease).await;
                }
                return Ok(self.waits(*batch).await.is_none());
            }
            WaitReason::Unstarted { .. } => return Ok(false),
            reason => self.remove_by_write(task, reason).await,
        }
        Ok(true)
    }

    /// Ends the tasks that a task depends on.
    async fn end_all(&mut self, tasks: &[TaskId], depth: usize) -> Result<(), FalseReason> {
        for task in tasks {
            if let Started::Runs(lease) = self.start(*task, depth + 1).await? {
                self.end(lease).await;
            } else if self.store.find(*task).await.is_some_and(|task| !task.state.is_ended()) {
                self.store.write(Write::Delete { task: *task }).await;
            }
        }
        self.store.sweep().await;
        Ok(())
    }

    /// Removes a reason with one write, or by moving the clock.
    async fn remove_by_write(&self, task: TaskId, reason: &WaitReason) {
        match reason {
            WaitReason::NotDue { run_at } => {
                if !self.wait_until(*run_at) {
                    self.store.write(Write::RunNow { task }).await;
                }
            }
            WaitReason::Parked { until, .. } => {
                let is_for_time = task.0 % 2 == 0;
                if !(is_for_time && until.is_some_and(|until| self.wait_until(until))) {
                    let (to, name) = (Recipient::Task(task), name("event"));
                    self.store.write(Write::Signal(Box::new(Signal { to, name, payload: "x".into() }))).await;
                }
            }
            WaitReason::OrchestrationPaused { .. } => self.store.done(Write::ResumeOrchestration { task }).await,
            WaitReason::Paused { scope, .. } => self.store.done(Write::Resume { scope: scope.clone() }).await,
            WaitReason::Concurrency { limit_on, .. } => {
                let concurrency = Some(ConcurrencyLimit::Unlimited);
                self.limit(SetLimit { concurrency, ..unchanged(limit_on) }).await;
            }
            WaitReason::Rate { next, .. } if task.0 % 2 == 0 && *next <= LONGEST => self.store.advance(*next),
            WaitReason::Contended { limit_on, .. } => {
                let (concurrency, rate) = (Some(ConcurrencyLimit::Unlimited), Some(RateLimit::Unlimited));
                self.limit(SetLimit { concurrency, rate, ..unchanged(limit_on) }).await;
            }
            WaitReason::Rate { limit_on, .. } => {
                self.limit(SetLimit { rate: Some(RateLimit::Unlimited), ..unchanged(limit_on) }).await;
            }
            WaitReason::Reserved { session, .. } => {
                self.store.write(Write::Retire { session: *session }).await;
            }
            WaitReason::Completion { token, .. } => {
                self.store
                    .write(Write::CompleteExternally {
                        token: *token,
                        completion: ExternalCompletion::Complete { result: None },
                    })
                    .await;
            }
            // The sweep below ends the task.
            WaitReason::Expired { .. } => {}
            reason => panic!("{reason:?} is nothing to remove"),
        }
        self.store.sweep().await;
    }

    async fn limit(&self, set: SetLimit) {
        let outcome = self.store.write(Write::SetLimit(set)).await;
        assert!(matches!(outcome, Outcome::LimitSet(_)), "{outcome:?}");
    }

    /// Starts and ends the tasks that go before a task, with a worker that has no other tasks.
    async fn run_tasks_before(&mut self, record: &TaskRecord) -> Result<bool, FalseReason> {
        let version = self.version(record.id).await;
        let session = self.worker(record, version).await;
        let taken = self.claim(session, record).await;
        for lease in taken.iter().filter(|lease| lease.task != record.id) {
            self.end(*lease).await;
        }
        self.store.done(Write::CloseSession { session }).await;
        if taken.is_empty() && self.waits(record.id).await.is_some() {
            return self.check_tasks_before(record).await;
        }
        Ok(true)
    }

    /// Checks that a reason holds back a task when no claim takes the tasks before it.
    async fn check_tasks_before(&mut self, record: &TaskRecord) -> Result<bool, FalseReason> {
        let reasons = self.why(record.id).await;
        let others =
            reasons.iter().filter(|reason| !matches!(reason, WaitReason::Behind { .. } | WaitReason::Turn { .. }));
        match others.filter(|reason| prevents_start(reason)).count() {
            0 => Err(self.false_reason(record.id, "other tasks go before it, and no claim takes them")),
            _ => Ok(true),
        }
    }
}

fn serves(session: &SessionRecord, record: &TaskRecord, version: Option<u32>) -> bool {
    if record.orchestration {
        session.serves_orchestration(&record.queue, &record.kind, version)
    } else {
        session.serves(&record.queue, &record.kind)
    }
}

fn unchanged(scope: &onward_store::LimitScope) -> SetLimit {
    SetLimit { scope: scope.clone(), concurrency: None, rate: None, weight: None, minimum: None }
}

/// Returns true if no claim takes a task for which this reason is stated.
fn prevents_start(reason: &WaitReason) -> bool {
    !matches!(
        reason,
        WaitReason::Behind { .. }
            | WaitReason::Turn { .. }
            | WaitReason::Contended { .. }
            | WaitReason::Slot { .. }
            | WaitReason::NoWorker
            | WaitReason::NotServed { .. }
            | WaitReason::NoCode { .. }
            | WaitReason::Expires { .. }
    )
}

/// Returns the name of a reason, under which it is counted.
fn reason_name(reason: &WaitReason) -> &'static str {
    match reason {
        WaitReason::NotDue { .. } => "not due",
        WaitReason::Blocked { .. } => "blocked",
        WaitReason::Parked { .. } => "parked",
        WaitReason::Unstarted { .. } => "unstarted",
        WaitReason::OrchestrationPaused { .. } => "orchestration paused",
        WaitReason::Paused { .. } => "paused",
        WaitReason::Concurrency { .. } => "concurrency",
        WaitReason::Rate { .. } => "rate",
        WaitReason::Contended { .. } => "contended",
        WaitReason::Reserved { .. } => "reserved",
        WaitReason::Behind { .. } => "behind",
        WaitReason::Turn { .. } => "turn",
        WaitReason::Slot { .. } => "slot",
        WaitReason::NoWorker => "no worker",
        WaitReason::NotServed { .. } => "not served",
        WaitReason::NoCode { .. } => "no code",
        WaitReason::Completion { .. } => "completion",
        WaitReason::PendingBatch { .. } => "collecting",
        WaitReason::InBatch { .. } => "in batch",
        WaitReason::Expired { .. } => "expired",
        _ => "other",
    }
}
