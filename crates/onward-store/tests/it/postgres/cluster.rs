//! Nodes on one server, each a process of its own, and the facts that they reported.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use onward_store::{
    Claim, Clock, Durability, OpenSession, Outcome, PostgresStore, QueueRecord, SessionRecord, Store, StoreReads,
    SystemClock, Write,
};
use onward_testkit::postgres::Server;
use onward_testkit::{close_sessions, soak};
use tokio::runtime::Runtime;

use crate::child::{Process, Speech};
use crate::ledger::{Known, Tally};
use crate::load::{self, Fact};

/// The number of nodes.
pub(crate) const NODES: usize = 3;
/// The longest time without a fact. A longer silence is a failure.
const SILENCE: Duration = Duration::from_secs(60);
/// The number of rows that are examined after each fault. The others are counted, and are in the
/// events.
const ROWS: usize = 100;
/// The setting after which a server of these tests ends an idle transaction.
const IDLE: &str = "idle_in_transaction_session_timeout=1s";

/// A process that works as fast as it can.
struct Node {
    process: Process,
    /// The URL at which it finds the server.
    url: String,
    /// The number of the process among all that were started, so that facts of its predecessor are
    /// not taken for its own.
    number: usize,
}

/// A fact of a node, with the node's number.
type Said = (usize, Fact);

/// Three nodes, and a connection of the test to the server that only faults of the server affect.
pub(crate) struct Cluster {
    pub(crate) server: Server,
    pub(crate) random: fastrand::Rng,
    runtime: Runtime,
    store: Arc<PostgresStore>,
    nodes: Vec<Node>,
    lease: Duration,
    started: usize,
    sender: Sender<Said>,
    facts: Receiver<Said>,
    /// The facts since the last examination.
    received: Vec<Fact>,
    known: Known,
    tally: Tally,
}

/// Starts a server on which a stopped process does not block the others for long.
pub(crate) fn server() -> Option<Server> {
    Server::with_settings(&[IDLE])
}

impl Cluster {
    /// Starts a node at each of these URLs.
    pub(crate) fn start(server: Server, urls: [String; NODES], lease: Duration) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let store = runtime.block_on(PostgresStore::open(&server.url())).expect("a store opens");
        let (sender, facts) = channel();
        let seed = soak::seed();
        let mut tally = Tally::default();
        tally.sum.seed = seed;
        let mut cluster = Self {
            server,
            random: fastrand::Rng::with_seed(seed),
            runtime,
            store: Arc::new(store),
            nodes: Vec::new(),
            lease,
            started: 0,
            sender,
            facts,
            received: Vec::new(),
            known: Known::default(),
            tally,
        };
        for url in urls {
            let node = cluster.new_node(url);
            cluster.nodes.push(node);
        }
        cluster
    }

    /// Causes a fault under load `rounds` times. Checks after each that nothing was lost or
    /// doubled, and that every node makes progress. Prints the counts after each, and returns the
    /// number of ends that came too late.
    pub(crate) fn survive(mut self, rounds: u64, mut fault: impl FnMut(&mut Self)) -> u64 {
        for round in 1..=rounds {
            let enough = self.random.usize(1..200);
            self.receive(enough);
            // The moment right after a report is not random, so a random delay follows.
            (0..self.random.u32(0..1_000_000)).for_each(|_| std::hint::spin_loop());
            fault(&mut self);
            self.await_progress();
            self.examine();
            println!("round={round} refused={} {}", self.tally.refused, self.tally.sum);
        }
        let stuck = self.finish();
        let Tally { sum, refused, complaints } = &self.tally;
        println!("stuck={stuck} refused={refused} {sum}");
        assert_eq!((sum.lost, sum.duplicated, stuck), (0, 0, 0), "{}", complaints.join("\n"));
        *refused
    }

    /// Returns one of the nodes, at random.
    pub(crate) fn any(&mut self) -> usize {
        self.random.usize(0..NODES)
    }

    /// Kills a node (`kill -9`) and starts another in its place. Waits until the lease of the
    /// killed node has lapsed.
    pub(crate) fn replace(&mut self, node: usize) {
        let url = self.nodes[node].url.clone();
        let new = self.new_node(url);
        let mut old = std::mem::replace(&mut self.nodes[node], new);
        let name = load::session_name(old.process.id());
        old.process.kill();
        self.await_lapse(&name);
    }

    /// Stops a node (`kill -STOP`) until its lease has lapsed, then continues it (`kill -CONT`).
    pub(crate) fn stand_still(&mut self, node: usize) {
        self.nodes[node].process.stop();
        self.give_up(node);
        self.nodes[node].process.go_on();
    }

    /// Waits until the lease of a node that cannot reach the server has lapsed.
    pub(crate) fn give_up(&mut self, node: usize) {
        let name = load::session_name(self.nodes[node].process.id());
        self.await_lapse(&name);
    }

    fn new_node(&mut self, url: String) -> Node {
        let (process, speech) = load::start(&url, Durability::Full, self.lease, self.random.u64(..));
        self.started += 1;
        let number = self.started;
        receive_aside(speech, number, self.sender.clone());
        Node { process, url, number }
    }

    /// Receives `count` facts.
    fn receive(&mut self, count: usize) {
        for _ in 0..count {
            self.receive_one();
        }
    }

    fn receive_one(&mut self) -> Said {
        let said = self.facts.recv_timeout(SILENCE).expect("the nodes go on");
        self.received.push(said.1);
        said
    }

    /// Waits until each node has completed another task.
    fn await_progress(&mut self) {
        self.received.extend(self.facts.try_iter().map(|(_, fact)| fact));
        self.receive_from_all(|fact| matches!(fact, Fact::Completed(_)));
    }

    fn receive_from_all(&mut self, is_meant: impl Fn(&Fact) -> bool) {
        let mut silent: HashSet<usize> = self.nodes.iter().map(|node| node.number).collect();
        while !silent.is_empty() {
            let (number, fact) = self.receive_one();
            if is_meant(&fact) {
                silent.remove(&number);
            }
        }
    }

    /// Makes every node finish its calls under way, which must be possible, and compares the facts
    /// with the store.
    fn examine(&mut self) {
        self.send(load::HOLD);
        self.receive_from_all(|fact| *fact == Fact::Quiet);
        self.look();
        self.send(load::GO_ON);
    }

    fn send(&mut self, order: &str) {
        self.nodes.iter_mut().for_each(|node| node.process.send(order));
    }

    fn look(&mut self) {
        let Self { runtime, store, known, tally, received, .. } = self;
        let facts = std::mem::take(received);
        known.learn(&facts, tally);
        runtime.block_on(async {
            sweep(store).await;
            known.examine(&**store, ROWS, tally).await;
            known.examine_sizes(&**store, tally).await;
            let running: u64 = store.queues().await.unwrap().iter().map(|queue| queue.running).sum();
            assert_eq!(running, 0, "seed {}: nobody works, and tasks are held", tally.sum.seed);
        });
        tally.sum.recovered = known.taken_back();
    }

    /// Waits until the lease of a session that is not renewed has lapsed and its tasks have been
    /// taken back.
    fn await_lapse(&mut self, name: &str) {
        let (store, clock) = (Arc::clone(&self.store), SystemClock);
        let over = clock.steady() + self.lease;
        let holds = |session: &SessionRecord| session.name == name && session.running > 0;
        self.runtime.block_on(async {
            while store.sessions().await.unwrap().iter().any(holds) || clock.steady() < over {
                sweep(&store).await;
            }
        });
    }

    /// Stops the nodes and completes all tasks that are left. Returns the number of tasks that did
    /// not end.
    fn finish(&mut self) -> u64 {
        self.send(load::HOLD);
        self.receive_from_all(|fact| *fact == Fact::Quiet);
        self.nodes.iter_mut().for_each(|node| node.process.kill());
        self.received.extend(self.facts.try_iter().map(|(_, fact)| fact));
        self.look();
        let store = Arc::clone(&self.store);
        self.runtime.block_on(async {
            close_sessions(&*store).await;
            work_off(&store).await
        })
    }
}

fn live(queue: &QueueRecord) -> u64 {
    queue.blocked + queue.scheduled + queue.waiting + queue.running
}

async fn sweep(store: &PostgresStore) {
    let outcomes = store.apply(vec![Write::Sweep]).await.unwrap();
    assert!(matches!(outcomes[..], [Outcome::Swept(_)]), "{outcomes:?}");
}

/// Completes every task. Returns how many are left when no more end, however long that took.
async fn work_off(store: &PostgresStore) -> u64 {
    let open = OpenSession::new("the last one", Duration::from_secs(3600));
    let outcomes = store.apply(vec![Write::OpenSession(open)]).await.unwrap();
    let Outcome::SessionOpened(session) = outcomes[0] else { panic!("no session: {outcomes:?}") };
    let (mut least, mut since) = (u64::MAX, SystemClock.steady());
    loop {
        let left: u64 = store.queues().await.unwrap().iter().map(live).sum();
        if left < least {
            (least, since) = (left, SystemClock.steady());
        }
        if left == 0 || SystemClock.steady() - since > SILENCE {
            return left;
        }
        let claim = Write::Claim(Claim::any(session, 1000));
        let mut outcomes = store.apply(vec![Write::Sweep, claim]).await.unwrap();
        let Some(Outcome::Claimed(claimed)) = outcomes.pop() else { panic!("a claim answered {outcomes:?}") };
        let complete = |task: &onward_store::ClaimedTask| Write::Complete { lease: task.lease, result: None };
        store.apply(claimed.tasks.iter().map(complete).collect()).await.unwrap();
    }
}

/// Receives the facts of a process on a thread of its own, which ends with the process. A process
/// that failed reports that, and then nothing more.
fn receive_aside(speech: Speech, number: usize, sender: Sender<Said>) {
    std::thread::spawn(move || {
        for line in speech {
            // The send fails when the test is over, which is fine.
            let _ = sender.send((number, Fact::parse(&line)));
        }
    });
}
