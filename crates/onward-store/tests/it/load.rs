//! A process that works as fast as it can until it is killed, and reports its acknowledgements.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward_store::{
    AfterFailure, Claim, ClaimedTask, Durability, NewTask, OpenSession, Outcome, Refusal, SessionId, SqliteStore,
    Store, Submitted, UniqueKey, When, Write,
};

use tokio::sync::RwLock;

use crate::child;

/// The number of concurrent submitters.
const SUBMITTERS: u64 = 3;
/// The most submits in one call.
const CALL: usize = 6;
/// The number of keys. It is small, so that keys are often taken.
const KEYS: u32 = 40;

const PLACE: &str = "ONWARD_KILL_PLACE";
const CLASS: &str = "ONWARD_KILL_CLASS";
const SEED: &str = "ONWARD_KILL_SEED";
const LEASE: &str = "ONWARD_KILL_LEASE";

/// The order to finish all calls under way, report [quiet](Fact::Quiet), and wait.
pub(crate) const HOLD: &str = "hold";
/// The order to continue.
pub(crate) const GO_ON: &str = "go on";

/// A fact that a worker reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    /// The worker attempts this many submits.
    Attempted(u64),
    /// The store acknowledged a new task.
    Submitted(i64),
    /// The store acknowledged an existing task instead of a new one.
    Duplicate(i64),
    /// The store acknowledged a completion.
    Completed(i64),
    /// An end came too late: the worker had lost the lease.
    Refused(i64),
    /// The worker was ordered to [hold](HOLD), and no call is under way.
    Quiet,
}

/// The function to which facts are reported.
pub(crate) type Say = Arc<dyn Fn(Fact) + Send + Sync>;

impl Fact {
    fn say(self) {
        child::say(&match self {
            Self::Attempted(count) => format!("attempted {count}"),
            Self::Submitted(id) => format!("submitted {id}"),
            Self::Duplicate(id) => format!("duplicate {id}"),
            Self::Completed(id) => format!("completed {id}"),
            Self::Refused(id) => format!("refused {id}"),
            Self::Quiet => "quiet 0".to_owned(),
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
            "refused" => Self::Refused(number),
            "quiet" => Self::Quiet,
            other => panic!("`{other}` is no fact"),
        }
    }
}

/// Starts a worker on a file, or on a server given by its URL.
pub(crate) fn start(place: &str, class: Durability, lease: Duration, seed: u64) -> (child::Process, child::Speech) {
    let variables = [
        (PLACE, place.to_owned()),
        (CLASS, class.to_string()),
        (LEASE, lease.as_millis().to_string()),
        (SEED, seed.to_string()),
    ];
    child::Process::start("load::worker", &variables)
}

/// Not a test: the process that [`start`] runs. It never ends by itself.
#[test]
#[ignore = "a worker process, started by tests that kill it"]
fn worker() {
    let Ok(place) = std::env::var(PLACE) else { return };
    child::begin();
    let class = match std::env::var(CLASS).as_deref() {
        Ok("full") => Durability::Full,
        Ok("normal") => Durability::Normal,
        other => panic!("{CLASS} is {other:?}"),
    };
    let number = |name| std::env::var(name).expect("a worker is told").parse::<u64>().expect("it is a number");
    let (lease, seed) = (Duration::from_millis(number(LEASE)), number(SEED));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (store, gate) = (open(&place, class).await, Arc::default());
        tokio::spawn(obey(Arc::clone(&gate)));
        Load { store, say: Arc::new(Fact::say), lease, gate }.run(seed).await;
    });
}

/// Obeys the orders of the parent to hold and to continue.
async fn obey(gate: Arc<RwLock<()>>) {
    let (sender, mut orders) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Some(order) = child::receive() {
            sender.send(order).expect("somebody obeys");
        }
    });
    let mut held = None;
    while let Some(order) = orders.recv().await {
        match order.as_str() {
            HOLD => {
                held = Some(gate.write().await);
                Fact::Quiet.say();
            }
            GO_ON => drop(held.take()),
            other => panic!("`{other}` is no order"),
        }
    }
}

async fn open(place: &str, class: Durability) -> Arc<dyn Store> {
    #[cfg(feature = "postgres")]
    if place.starts_with("postgres:") {
        let options = onward_store::PostgresStore::options().durability(class).readers(1);
        return Arc::new(options.open(place).await.expect("the store opens"));
    }
    Arc::new(SqliteStore::options().durability(class).open(place).await.expect("the store opens"))
}

/// Returns the name of a worker's sessions.
pub(crate) fn session_name(process: u32) -> String {
    format!("load {process}")
}

/// A load on a store that is as high as possible.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) say: Say,
    pub(crate) lease: Duration,
    /// Held while a step is under way. A task that locks it for writing sees no step under way.
    pub(crate) gate: Arc<RwLock<()>>,
}

impl Load {
    /// Runs the load. Never ends by itself.
    pub(crate) async fn run(self, seed: u64) {
        let mut submitters = tokio::task::JoinSet::new();
        for number in 0..SUBMITTERS {
            submitters.spawn(self.clone().submit_for_ever(fastrand::Rng::with_seed(seed.wrapping_add(number))));
        }
        let random = fastrand::Rng::with_seed(seed.wrapping_add(SUBMITTERS));
        tokio::select! {
            () = self.run_for_ever(random) => {}
            ended = submitters.join_next() => panic!("a submitter ended: {ended:?}"),
        }
    }

    async fn submit_for_ever(self, mut random: fastrand::Rng) {
        loop {
            let _step = self.gate.read().await;
            let writes: Vec<Write> = (0..random.usize(1..=CALL)).map(|_| submit(&mut random)).collect();
            (self.say)(Fact::Attempted(writes.len() as u64));
            for outcome in self.store.apply(writes).await.expect("a submit is taken") {
                match outcome {
                    Outcome::Submitted(Submitted::Inserted { id }) => (self.say)(Fact::Submitted(id.0)),
                    Outcome::Submitted(existing) => (self.say)(Fact::Duplicate(existing.id().0)),
                    other => panic!("a submit answered {other:?}"),
                }
            }
            tokio::task::yield_now().await;
        }
    }

    async fn run_for_ever(&self, random: fastrand::Rng) {
        let random = Mutex::new(random);
        let mut session = self.open_session().await;
        loop {
            let _step = self.gate.read().await;
            let Some(tasks) = self.claim(session).await else {
                session = self.open_session().await;
                continue;
            };
            let ends: Vec<Write> = tasks.iter().map(|task| end(&mut random.lock().unwrap(), task)).collect();
            let outcomes = self.store.apply(ends.clone()).await.expect("an end is taken");
            for (task, (write, outcome)) in tasks.iter().zip(ends.iter().zip(outcomes)) {
                match (write, outcome) {
                    (Write::Complete { lease, .. }, Outcome::Done) => (self.say)(Fact::Completed(lease.task.0)),
                    (_, Outcome::Done | Outcome::Failed(_)) => {}
                    (_, Outcome::Refused(Refusal::LeaseLost(_) | Refusal::SessionLost(_))) => {
                        (self.say)(Fact::Refused(task.lease.task.0));
                    }
                    (write, other) => panic!("{write:?} answered {other:?}"),
                }
            }
            tokio::task::yield_now().await;
        }
    }

    async fn open_session(&self) -> SessionId {
        let open = OpenSession::new(session_name(std::process::id()), self.lease);
        let outcomes = self.store.apply(vec![Write::OpenSession(open)]).await.expect("a session opens");
        let Outcome::SessionOpened(session) = outcomes[0] else { panic!("no session: {outcomes:?}") };
        session
    }

    /// Claims tasks. Returns `None` if the session is over.
    async fn claim(&self, session: SessionId) -> Option<Vec<ClaimedTask>> {
        let writes = vec![Write::RenewSession { session }, Write::Claim(Claim::any(session, 16))];
        let mut outcomes = self.store.apply(writes).await.expect("a claim is answered");
        match outcomes.pop() {
            Some(Outcome::Claimed(claimed)) => Some(claimed.tasks),
            Some(Outcome::Refused(Refusal::SessionLost(_))) => None,
            other => panic!("a claim answered {other:?}"),
        }
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

/// Returns a random end of an attempt. Most attempts complete; some fail and are retried, some are
/// released, and a few become dead letters.
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
