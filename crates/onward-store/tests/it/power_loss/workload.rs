//! The load on the store when the power fails.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use onward_store::{
    AfterFailure, Claim, ClaimedTask, Clock, Durability, ManualClock, Name, NewTask, OpenSession, Outcome, Scope,
    SessionId, SqliteStore, Store, StoreReads, Submitted, TaskId, TaskState, Write,
};
use onward_testkit::task;

use super::facts::{Acknowledgement, Fact, Subject};
use super::recording::{Operation, Recording};
use super::vfs;

/// The number of times that the store is opened, used and closed.
const LIVES: usize = 3;

/// The number of concurrent callers.
const CALLERS: usize = 12;

/// The number of calls that each makes in one use of the store.
const CALLS: usize = 6;

/// The number of claims of the worker in one use.
const CLAIMS: usize = 20;

/// The number of changes of the operator in one use.
const CHANGES: usize = 30;

/// A queue that the operator keeps paused, so that no worker touches its tasks.
const HELD: &str = "held";

/// A queue that the operator pauses and resumes.
const TOGGLED: &str = "toggled";

/// The length of the write-ahead log, in pages, at which it is copied back: a few dozen commits.
const LONG_LOG: i32 = 100;

/// The result of a workload.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) operations: Vec<Operation>,
    pub(super) acknowledgements: Vec<Acknowledgement>,
    pub(super) clock: Arc<ManualClock>,
}

/// A store in use.
#[derive(Debug)]
struct Scene {
    store: SqliteStore,
    recording: Arc<Recording>,
    acknowledgements: Mutex<Vec<Acknowledgement>>,
}

/// Opens, uses and closes a store a few times. Returns every operation on its files. The seed
/// determines the calls; the scheduler determines their order.
pub(super) async fn run(durability: Durability, seed: u64) -> Run {
    vfs::register();
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().canonicalize().expect("the directory is there").join("onward.db");
    let recording = Recording::of(&path);
    let clock = Arc::new(ManualClock::default());
    let mut random = Rng::with_seed(seed);
    let mut acknowledgements = Vec::new();
    for _ in 0..LIVES {
        let store = open(&path, durability, clock.clone()).await;
        let scene = Scene { store, recording: Arc::clone(&recording), acknowledgements: Mutex::default() };
        acknowledgements.extend(live(scene, &mut random).await);
    }
    Run { operations: recording.take(), acknowledgements, clock }
}

async fn open(path: &Path, durability: Durability, clock: Arc<dyn Clock>) -> SqliteStore {
    let options = SqliteStore::options().vfs(vfs::NAME).long_log(LONG_LOG);
    options.durability(durability).clock(clock).open(path).await.expect("a store opens on the layer")
}

/// Uses the store once, until its close.
async fn live(scene: Scene, random: &mut Rng) -> Vec<Acknowledgement> {
    let scene = Arc::new(scene);
    let mut parts = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        parts.spawn(submit(Arc::clone(&scene), random.fork()));
    }
    parts.spawn(work(Arc::clone(&scene), random.fork()));
    parts.spawn(operate(Arc::clone(&scene), random.fork()));
    while let Some(part) = parts.join_next().await {
        part.expect("no part of the workload fails");
    }
    let scene = Arc::into_inner(scene).expect("every part has ended");
    scene.acknowledgements.into_inner().expect("no part of the workload failed")
}

/// Runs a caller. It submits one task or several in a call, of all sizes, and sometimes reads their
/// state.
async fn submit(scene: Arc<Scene>, mut random: Rng) {
    for _ in 0..CALLS {
        let count = if random.bool() { 1 } else { random.usize(2..9) };
        let writes = (0..count).map(|_| Write::Submit(Box::new(any_task(&mut random)))).collect();
        let asked = scene.recording.position();
        let tasks: Vec<TaskId> = scene.apply(writes).await.iter().map(submitted).collect();
        scene.acknowledge(tasks.into_iter().map(|task| (Subject::Task(task), Fact::Submitted)).collect(), asked);
        if random.u8(..4) == 0 {
            scene.store.statistics().await.expect("the store can be read");
        }
    }
}

/// Returns a task whose payload may or may not fit into its row, with or without an affinity key.
fn any_task(random: &mut Rng) -> NewTask {
    let payload = vec![random.u8(..); random.usize(..6000)];
    let affinity_key = random.u8(..6);
    let affinity = (affinity_key < 3).then(|| name(&format!("affinity_key-{affinity_key}")));
    NewTask { payload: payload.into(), affinity, ..task("any") }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("the name is valid")
}

fn submitted(outcome: &Outcome) -> TaskId {
    match outcome {
        Outcome::Submitted(Submitted::Inserted { id }) => *id,
        other => panic!("a task without a key is inserted, not {other:?}"),
    }
}

/// Runs the worker. It ends claimed tasks one by one or in one call, and keeps some until the store
/// is closed.
async fn work(scene: Arc<Scene>, mut random: Rng) {
    let session = open_session(&scene.store).await;
    for _ in 0..CLAIMS {
        let mut claimed = claim(&scene.store, session, 12).await;
        claimed.truncate(random.usize(6..=12));
        let one_by_one = random.bool();
        let size = if one_by_one { 1 } else { claimed.len().max(1) };
        for group in claimed.chunks(size) {
            scene.end(group, &mut random).await;
        }
    }
}

/// Runs the operator. It cancels, kills and retries tasks of a paused queue, and pauses and resumes
/// another queue.
async fn operate(scene: Arc<Scene>, mut random: Rng) {
    scene.pause(HELD, true).await;
    let mut tasks: Vec<(TaskId, bool)> = Vec::new();
    for _ in 0..CHANGES {
        match random.u8(..4) {
            0 => scene.pause(TOGGLED, random.bool()).await,
            1 | 2 if !tasks.is_empty() => {
                let one = random.usize(..tasks.len());
                let (task, is_ended) = &mut tasks[one];
                scene.change(*task, *is_ended, random.bool()).await;
                *is_ended = !*is_ended;
            }
            _ => tasks.push((scene.submit_to(HELD).await, false)),
        }
    }
}

pub(super) async fn open_session(store: &SqliteStore) -> SessionId {
    let open = OpenSession::new("worker", Duration::from_secs(60));
    let outcomes = store.apply(vec![Write::OpenSession(open)]).await.expect("the store can be written");
    let [Outcome::SessionOpened(session)] = outcomes[..] else { panic!("a session opens, not {outcomes:?}") };
    session
}

pub(super) async fn claim(store: &SqliteStore, session: SessionId, limit: usize) -> Vec<ClaimedTask> {
    let claim = Claim::any(session, limit);
    let mut outcomes = store.apply(vec![Write::Claim(claim)]).await.expect("the store can be written");
    let Some(Outcome::Claimed(claimed)) = outcomes.pop() else { panic!("a session that lives may claim") };
    claimed.tasks
}

impl Scene {
    async fn apply(&self, writes: Vec<Write>) -> Vec<Outcome> {
        self.store.apply(writes).await.expect("the store can be written")
    }

    /// Ends the attempts and their tasks, most of them as completed.
    async fn end(&self, tasks: &[ClaimedTask], random: &mut Rng) {
        let (writes, states): (Vec<Write>, Vec<TaskState>) = tasks.iter().map(|task| any_end(task, random)).unzip();
        let asked = self.recording.position();
        let outcomes = self.apply(writes).await;
        let is_done = |outcome: &Outcome| matches!(outcome, Outcome::Done | Outcome::Failed(_));
        assert!(outcomes.iter().all(is_done), "a lease that holds ends its attempt: {outcomes:?}");
        let subjects = tasks.iter().map(|task| Subject::Task(task.lease.task));
        self.acknowledge(subjects.zip(states.into_iter().map(Fact::Is)).collect(), asked);
    }

    async fn pause(&self, queue: &str, is_paused: bool) {
        let scope = Scope::Queue(name(queue));
        let write = if is_paused { Write::Pause { scope, until: None } } else { Write::Resume { scope } };
        self.know(write, Subject::Queue(name(queue)), Fact::Paused(is_paused)).await;
    }

    /// Ends a task that does not run, or retries one that has ended.
    async fn change(&self, task: TaskId, is_ended: bool, is_cancelled: bool) {
        let (write, state) = match (is_ended, is_cancelled) {
            (true, _) => (Write::Retry { task }, TaskState::Waiting),
            (false, true) => (Write::Cancel { task }, TaskState::Cancelled),
            (false, false) => (Write::Kill { task }, TaskState::Dead),
        };
        self.know(write, Subject::Task(task), Fact::Is(state)).await;
    }

    async fn submit_to(&self, queue: &str) -> TaskId {
        let asked = self.recording.position();
        let submit = Write::Submit(Box::new(NewTask { queue: name(queue), ..task("any") }));
        let id = submitted(&self.apply(vec![submit]).await[0]);
        self.acknowledge(vec![(Subject::Task(id), Fact::Submitted)], asked);
        id
    }

    async fn know(&self, write: Write, subject: Subject, fact: Fact) {
        let asked = self.recording.position();
        let outcomes = self.apply(vec![write]).await;
        assert!(matches!(outcomes[..], [Outcome::Done | Outcome::Cancelled]), "{subject:?} {fact:?}: {outcomes:?}");
        self.acknowledge(vec![(subject, fact)], asked);
    }

    fn acknowledge(&self, facts: Vec<(Subject, Fact)>, asked: usize) {
        let given = self.recording.position();
        let acknowledgement = Acknowledgement { facts, asked, given };
        self.acknowledgements.lock().expect("no part of the workload failed").push(acknowledgement);
    }
}

/// Returns an end of the attempt without a retry, and the state in which the task ends.
fn any_end(task: &ClaimedTask, random: &mut Rng) -> (Write, TaskState) {
    let lease = task.lease;
    let failed = |next| Write::Fail { lease, error: "an error".into(), next };
    match random.u8(..8) {
        0 => (failed(AfterFailure::Fail), TaskState::Failed),
        1 => (failed(AfterFailure::Dead), TaskState::Dead),
        2 => (Write::ConfirmCancel { lease, reason: "no longer needed".into() }, TaskState::Cancelled),
        _ => (Write::Complete { lease, result: Some("done".into()) }, TaskState::Completed),
    }
}
