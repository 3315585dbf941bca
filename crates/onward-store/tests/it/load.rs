//! A process that works as hard as it can until it is killed, and says what was acknowledged.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward_store::{
    AfterFailure, Claim, ClaimedTask, Durability, NewTask, OpenSession, Outcome, SessionId, SqliteStore, Store,
    Submitted, UniqueKey, When, Write,
};

use crate::child;

/// How many callers submit at once.
const SUBMITTERS: u64 = 3;
/// The most submits in one call.
const CALL: usize = 6;
/// How many keys there are: few, so that they are taken often.
const KEYS: u32 = 40;

const PATH: &str = "ONWARD_KILL_PATH";
const CLASS: &str = "ONWARD_KILL_CLASS";
const SEED: &str = "ONWARD_KILL_SEED";

/// What a worker said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    /// It asks for so many submits.
    Attempted(u64),
    /// A new task was acknowledged.
    Submitted(i64),
    /// An existing task was acknowledged in place of a new one.
    Duplicate(i64),
    /// A completion was acknowledged.
    Completed(i64),
}

impl Fact {
    fn say(self) {
        child::say(&match self {
            Self::Attempted(count) => format!("attempted {count}"),
            Self::Submitted(id) => format!("submitted {id}"),
            Self::Duplicate(id) => format!("duplicate {id}"),
            Self::Completed(id) => format!("completed {id}"),
        });
    }

    pub(crate) fn parse(line: &str) -> Self {
        let (word, number) = line.split_once(' ').expect("a fact is a word and a number");
        let number: i64 = number.parse().expect("a fact is a word and a number");
        match word {
            "attempted" => Self::Attempted(number.unsigned_abs()),
            "submitted" => Self::Submitted(number),
            "duplicate" => Self::Duplicate(number),
            "completed" => Self::Completed(number),
            other => panic!("`{other}` is no fact"),
        }
    }
}

/// Starts a worker on a file.
pub(crate) fn start(path: &std::path::Path, class: Durability, seed: u64) -> (child::Process, child::Speech) {
    let variables = [(PATH, path.display().to_string()), (CLASS, class.to_string()), (SEED, seed.to_string())];
    child::Process::start("load::worker", &variables)
}

/// Not a test: what [`start`] runs. It never ends by itself.
#[test]
#[ignore = "a worker process, started by the tests of `kill`"]
fn worker() {
    let Some(path) = std::env::var_os(PATH) else { return };
    child::begin();
    let class = match std::env::var(CLASS).as_deref() {
        Ok("full") => Durability::Full,
        Ok("normal") => Durability::Normal,
        other => panic!("{CLASS} is {other:?}"),
    };
    let seed: u64 = std::env::var(SEED).expect("a worker has a seed").parse().expect("a seed is a number");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(work(path.into(), class, seed));
}

async fn work(path: PathBuf, class: Durability, seed: u64) {
    let store = Arc::new(SqliteStore::options().durability(class).open(path).await.expect("the store opens"));
    for number in 0..SUBMITTERS {
        tokio::spawn(submit_for_ever(Arc::clone(&store), fastrand::Rng::with_seed(seed.wrapping_add(number))));
    }
    run_for_ever(&store, fastrand::Rng::with_seed(seed.wrapping_add(SUBMITTERS))).await;
}

async fn submit_for_ever(store: Arc<SqliteStore>, mut random: fastrand::Rng) {
    loop {
        let writes: Vec<Write> = (0..random.usize(1..=CALL)).map(|_| submit(&mut random)).collect();
        Fact::Attempted(writes.len() as u64).say();
        for outcome in store.apply(writes).await.expect("a submit is taken") {
            match outcome {
                Outcome::Submitted(Submitted::Inserted { id }) => Fact::Submitted(id.0).say(),
                Outcome::Submitted(existing) => Fact::Duplicate(existing.id().0).say(),
                other => panic!("a submit answered {other:?}"),
            }
        }
        tokio::task::yield_now().await;
    }
}

fn submit(random: &mut fastrand::Rng) -> Write {
    let mut task = NewTask::new(["mail", "image"][random.usize(0..2)]).unwrap();
    task.payload = vec![b'x'; random.usize(0..300)].into();
    if random.u8(0..3) == 0 {
        task.unique = Some(UniqueKey {
            key: format!("key-{}", random.u32(0..KEYS)),
            on_duplicate: Default::default(),
            keep_for: Duration::ZERO,
        });
    }
    if random.u8(0..8) == 0 {
        task.when = When::After(Duration::from_millis(random.u64(1..200)));
    }
    Write::Submit(Box::new(task))
}

async fn run_for_ever(store: &SqliteStore, random: fastrand::Rng) {
    let random = Mutex::new(random);
    let open = OpenSession::new(format!("load {}", std::process::id()), Duration::from_secs(10));
    let outcomes = store.apply(vec![Write::OpenSession(open)]).await.expect("a session opens");
    let Outcome::SessionOpened(session) = outcomes[0] else { panic!("no session: {outcomes:?}") };
    loop {
        let tasks = claim(store, session).await;
        let ends: Vec<Write> = tasks.iter().map(|task| end(&mut random.lock().unwrap(), task)).collect();
        let outcomes = store.apply(ends.clone()).await.expect("an end is taken");
        for (write, outcome) in ends.iter().zip(outcomes) {
            match (write, outcome) {
                (Write::Complete { lease, .. }, Outcome::Done) => Fact::Completed(lease.task.0).say(),
                (_, Outcome::Done | Outcome::Failed(_)) => {}
                (write, other) => panic!("{write:?} answered {other:?}"),
            }
        }
        tokio::task::yield_now().await;
    }
}

async fn claim(store: &SqliteStore, session: SessionId) -> Vec<ClaimedTask> {
    let claim = Claim::any(session, 16);
    let mut outcomes = store.apply(vec![Write::Claim(claim)]).await.expect("a claim is answered");
    match outcomes.pop() {
        Some(Outcome::Claimed(claimed)) => claimed.tasks,
        other => panic!("a claim answered {other:?}"),
    }
}

/// Most attempts end well; some fail and are tried again, some are given back, a few end in the dead letters.
fn end(random: &mut fastrand::Rng, task: &ClaimedTask) -> Write {
    let lease = task.lease;
    let fail = |next| Write::Fail { lease, error: "no luck".into(), next };
    match random.u8(0..16) {
        0..3 => fail(AfterFailure::Retry {
            after: Duration::from_millis(random.u64(0..50)),
            uses_attempt: true,
            hold: false,
        }),
        3 => fail(AfterFailure::Dead),
        4 => Write::Release { lease, after: Duration::ZERO },
        _ => Write::Complete { lease, result: Some(vec![b'y'; random.usize(0..100)].into()) },
    }
}
