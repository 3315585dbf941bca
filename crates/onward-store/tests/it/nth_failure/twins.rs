//! A scenario, played on a SQLite store that fails sometimes, and on a memory store that gets only
//! the calls that succeeded.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    AfterFailure, Claim, Claimed, Error, Lease, ManualClock, MemoryStore, NewTask, OnDuplicate, OpenSession, Outcome,
    SessionId, SqliteOptions, SqliteStore, Store, TaskId, Write,
};
use onward_testkit::model_based::comparable;
use onward_testkit::{Fault, keyed, model_based, task};

use super::plan::{Armed, Plan};
use super::vfs;

/// The number of calls that fail on a lasting fault before the disk is repaired.
const FAILURES: u32 = 3;

/// The number of failures of one call after which its store counts as wedged.
const WEDGED: u32 = 20;

/// The number of tasks from an earlier use of the store.
const EARLIER: usize = 2;

/// The result of an earlier use of a store, and its twin.
#[derive(Debug)]
pub(super) struct Earlier {
    /// The options, with the failing layer.
    options: SqliteOptions,
    twin: MemoryStore,
    clock: Arc<ManualClock>,
    plan: Arc<Plan>,
}

impl Earlier {
    /// Uses a store on an intact disk and closes it.
    pub(super) async fn leave(path: &Path, options: SqliteOptions) -> Self {
        vfs::register();
        let clock = Arc::new(ManualClock::default());
        let plan = Plan::of(path);
        let options = options.vfs(vfs::NAME).clock(clock.clone());
        let twin = MemoryStore::with_clock(clock.clone());
        let earlier = vec![Write::Submit(Box::new(large("copy"))); EARLIER];
        twin.apply(earlier.clone()).await.expect("the twin does not fail");
        let store = options.clone().open(path).await.expect("a store opens on the layer");
        store.apply(earlier).await.expect("nothing fails yet");
        Self { options, twin, clock, plan }
    }

    /// Opens the store while the disk fails, and again after the repair. Returns whether the fault
    /// happened, and the difference that is left.
    pub(super) async fn open_again(self, path: &Path, armed: Armed) -> (bool, Option<String>) {
        self.plan.arm(armed);
        let opened = self.options.clone().open(path).await;
        let has_failed = self.plan.failed() > 0;
        if let Err(error) = &opened {
            assert!(has_failed, "{armed:?}: nobody asked for {error:?}");
            assert!(!error.is_invalid(), "{armed:?}: {error:?}");
        }
        self.plan.mend();
        drop(opened);
        let store = self.options.open(path).await.expect("a store opens when the disk is mended");
        let difference = model_based::difference(&store, &self.twin, TaskId(EARLIER as i64)).await;
        (has_failed, difference.expect("both can be read"))
    }
}

/// The SQLite store and its twin.
#[derive(Debug)]
pub(super) struct Twins {
    store: SqliteStore,
    twin: MemoryStore,
    clock: Arc<ManualClock>,
    plan: Arc<Plan>,
    armed: Armed,
    /// The number of submitted tasks.
    tasks: i64,
    pub(super) calls: u64,
    pub(super) failed_calls: u64,
}

impl Twins {
    /// Opens both stores on an intact disk, with tasks that must be read from it. The disk fails as
    /// planned from then on.
    pub(super) async fn open(path: &Path, options: SqliteOptions, armed: Armed) -> Self {
        let earlier = Earlier::leave(path, options).await;
        let store = earlier.options.open(path).await.expect("a store opens again");
        earlier.plan.arm(armed);
        let Earlier { twin, clock, plan, .. } = earlier;
        Self { store, twin, clock, plan, armed, tasks: EARLIER as i64, calls: 0, failed_calls: 0 }
    }

    /// Returns whether the fault has happened.
    pub(super) fn has_failed(&self) -> bool {
        self.plan.failed() > 0
    }

    /// Plays the scenario: tasks that complete or fail and are retried, with and without keys, one
    /// by one and several in a call.
    pub(super) async fn play(&mut self, rounds: usize) {
        let session = self.open_session().await;
        for round in 0..rounds {
            self.submit(vec![keyed(&format!("key {round}"), OnDuplicate::Skip), large("copy"), task("mail")]).await;
            let leases = self.claim(session).await;
            self.apply(vec![self.fail(leases[0]), complete(leases[1])]).await;
            self.apply(vec![Write::All(vec![complete(leases[2]), Write::Submit(Box::new(task("next")))])]).await;
            self.tasks += 1;
            self.clock.advance(Duration::from_millis(1500));
            self.apply(vec![Write::Sweep, Write::Cancel { task: TaskId(self.tasks) }]).await;
        }
        self.apply(vec![Write::CloseSession { session }]).await;
    }

    /// Returns the difference between the stores once the disk is repaired.
    pub(super) async fn difference(&self) -> Option<String> {
        self.plan.mend();
        let difference = model_based::difference(&self.store, &self.twin, TaskId(self.tasks)).await;
        difference.expect("both can be read")
    }

    /// Closes the store, opens it as any program would, and compares it again.
    pub(super) async fn difference_when_reopened(self, path: &Path) -> Option<String> {
        self.plan.mend();
        drop(self.store);
        // The layer stays in use because it skips the syncs.
        let options = SqliteStore::options().vfs(vfs::NAME).clock(self.clock.clone());
        let store = options.open(path).await.expect("the store opens again");
        let report = store.check().await.expect("the store can be checked");
        if !report.integrity.is_empty() || !report.consistency.is_empty() {
            return Some(format!("{:?} {:?}", report.integrity, report.consistency));
        }
        model_based::difference(&store, &self.twin, TaskId(self.tasks)).await.expect("both can be read")
    }

    /// Applies writes, repeatedly until the call succeeds. The twin applies them once.
    async fn apply(&mut self, writes: Vec<Write>) -> Vec<Outcome> {
        for failures in 1..=WEDGED {
            self.calls += 1;
            match self.store.apply(writes.clone()).await {
                Ok(outcomes) => {
                    let expected = self.twin.apply(writes).await.expect("the twin does not fail");
                    let [one, other] = [&outcomes, &expected].map(|all| all.iter().cloned().map(comparable));
                    assert!(one.eq(other), "{:?}: {outcomes:?} and {expected:?}", self.armed);
                    return outcomes;
                }
                Err(error) => self.fail_call(&error, failures),
            }
        }
        panic!("{:?}: the store is wedged", self.armed);
    }

    fn fail_call(&mut self, error: &Error, failures: u32) {
        let armed = self.armed;
        assert!(self.has_failed(), "{armed:?}: nobody asked for {error:?}");
        assert!(error.is_transient(), "{armed:?}: {error:?}");
        assert_eq!(error.is_full(), armed.fault == Fault::Full, "{armed:?}: {error:?}");
        self.failed_calls += 1;
        if failures >= FAILURES {
            self.plan.mend();
        }
    }

    async fn open_session(&mut self) -> SessionId {
        let open = OpenSession::new("worker", Duration::from_secs(60));
        let outcomes = self.apply(vec![Write::OpenSession(open)]).await;
        let [Outcome::SessionOpened(session)] = outcomes[..] else { panic!("a session opens, not {outcomes:?}") };
        session
    }

    async fn submit(&mut self, tasks: Vec<NewTask>) {
        self.tasks += i64::try_from(tasks.len()).expect("a few");
        self.apply(tasks.into_iter().map(|task| Write::Submit(Box::new(task))).collect()).await;
    }

    async fn claim(&mut self, session: SessionId) -> Vec<Lease> {
        let claim = Claim::any(session, 3);
        let outcomes = self.apply(vec![Write::Claim(claim)]).await;
        let [Outcome::Claimed(Claimed { tasks, .. })] = &outcomes[..] else { panic!("a claim, not {outcomes:?}") };
        tasks.iter().map(|task| task.lease).collect()
    }

    fn fail(&self, lease: Lease) -> Write {
        let next = AfterFailure::Retry { after: Duration::from_secs(1), uses_attempt: true, hold: false };
        Write::Fail { lease, error: "at first".into(), next }
    }
}

fn complete(lease: Lease) -> Write {
    Write::Complete { lease, result: Some("done".into()) }
}

/// Returns a task whose payload does not fit into one page.
fn large(kind: &str) -> NewTask {
    NewTask { payload: vec![b'x'; 6000].into(), ..task(kind) }
}
