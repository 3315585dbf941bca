//! What the store is doing when the power goes.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use onward_store::{
    Claim, ClaimedTask, Clock, Durability, ManualClock, Name, NewTask, OpenSession, Outcome, SessionId, SqliteStore,
    Store, Submitted, TaskId, Write,
};
use onward_testkit::task;

use super::recording::{Operation, Recording};
use super::vfs;

/// How often the store is opened, used and closed.
const LIVES: usize = 3;

/// How many callers submit at once.
const CALLERS: usize = 12;

/// How many calls each makes in one life.
const CALLS: usize = 6;

/// How often the worker claims in one life.
const CLAIMS: usize = 20;

/// How long the write-ahead log gets, in pages, before it is copied back: a few dozen commits.
const LONG_LOG: i32 = 100;

/// What somebody was told had been done.
#[derive(Debug)]
pub(super) struct Acknowledgement {
    pub(super) what: What,
    pub(super) tasks: Vec<TaskId>,
    /// How many operations there had been when the call was made.
    pub(super) asked: usize,
    /// And when the answer came.
    pub(super) given: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Submitted,
    Completed,
}

/// What happened in the end.
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

/// Opens, uses and closes a store a few times, and answers everything that was done to its files. The seed decides what the
/// callers ask for; how their calls meet is up to the scheduler.
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

/// One life of the store, to its close.
async fn live(scene: Scene, random: &mut Rng) -> Vec<Acknowledgement> {
    let scene = Arc::new(scene);
    let mut parts = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        parts.spawn(submit(Arc::clone(&scene), random.fork()));
    }
    parts.spawn(work(Arc::clone(&scene), random.fork()));
    while let Some(part) = parts.join_next().await {
        part.expect("no part of the workload fails");
    }
    let scene = Arc::into_inner(scene).expect("every part has ended");
    scene.acknowledgements.into_inner().expect("no part of the workload failed")
}

/// A caller: one task, or several in one call, of all sizes; and now and then a look at what became of them.
async fn submit(scene: Arc<Scene>, mut random: Rng) {
    for _ in 0..CALLS {
        let count = if random.bool() { 1 } else { random.usize(2..9) };
        let writes = (0..count).map(|_| Write::Submit(Box::new(any_task(&mut random)))).collect();
        let asked = scene.recording.position();
        let tasks = scene.apply(writes).await.iter().map(submitted).collect();
        scene.acknowledge(What::Submitted, tasks, asked);
        if random.u8(..4) == 0 {
            scene.store.statistics().await.expect("the store can be read");
        }
    }
}

/// A task whose payload fits into its row, or does not, and that has a series, or has none.
fn any_task(random: &mut Rng) -> NewTask {
    let payload = vec![random.u8(..); random.usize(..6000)];
    let series = random.u8(..6);
    let affinity = (series < 3).then(|| Name::new(format!("series-{series}")).expect("the name is valid"));
    NewTask { payload: payload.into(), affinity, ..task("any") }
}

fn submitted(outcome: &Outcome) -> TaskId {
    match outcome {
        Outcome::Submitted(Submitted::Inserted { id }) => *id,
        other => panic!("a task without a key is inserted, not {other:?}"),
    }
}

/// The worker: completes what it claims one by one or in one call, and keeps some until the store is closed.
async fn work(scene: Arc<Scene>, mut random: Rng) {
    let session = open_session(&scene.store).await;
    for _ in 0..CLAIMS {
        let mut claimed = claim(&scene.store, session, 12).await;
        claimed.truncate(random.usize(6..=12));
        let one_by_one = random.bool();
        let size = if one_by_one { 1 } else { claimed.len().max(1) };
        for group in claimed.chunks(size) {
            scene.complete(group).await;
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

    async fn complete(&self, tasks: &[ClaimedTask]) {
        let writes =
            tasks.iter().map(|task| Write::Complete { lease: task.lease, result: Some("done".into()) }).collect();
        let asked = self.recording.position();
        let outcomes = self.apply(writes).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Done), "a lease that holds completes: {outcomes:?}");
        self.acknowledge(What::Completed, tasks.iter().map(|task| task.lease.task).collect(), asked);
    }

    fn acknowledge(&self, what: What, tasks: Vec<TaskId>, asked: usize) {
        let given = self.recording.position();
        let acknowledgement = Acknowledgement { what, tasks, asked, given };
        self.acknowledgements.lock().expect("no part of the workload failed").push(acknowledgement);
    }
}
