//! A server that goes down under load and comes back. No caller gets an error, no acknowledged
//! write is lost, and nothing happens twice. (`survive` tests a killed server.)
//!
//! `ONWARD_ROUNDS` sets how often the server goes down (default: 6). `ONWARD_SEED` sets the random
//! seed (default: random).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use onward_store::{PostgresStore, Store, StoreReads};
use onward_testkit::postgres::{Crash, Server};
use onward_testkit::{close_sessions, soak};
use tokio::runtime::Runtime;
use tokio::sync::RwLock;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::ledger::{Known, Tally};
use crate::load::{Fact, Load};

/// The number of nodes in the test with several nodes.
const NODES: usize = 3;
/// The nodes' leases, longer than the server is down.
const LEASE: Duration = Duration::from_secs(10);
/// The longest time without a fact. A longer silence is a failure.
const SILENCE: Duration = Duration::from_secs(60);

/// Shows: T21, B4, W10
#[test]
fn a_server_that_stops_or_recovers_under_three_nodes_loses_and_doubles_nothing() {
    lose_and_double_nothing(NODES);
}

/// A node that is alone plans speculatively, and relies on transactions that may never commit.
///
/// Shows: T21, B4, W10
#[test]
fn a_server_that_stops_or_recovers_under_one_node_loses_and_doubles_nothing() {
    lose_and_double_nothing(1);
}

fn lose_and_double_nothing(count: usize) {
    let Some(server) = Server::start() else { return };
    let seed = soak::seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut known, mut tally) = (Known::default(), Tally::default());
    tally.sum.seed = seed;
    let runtime = runtime();
    let nodes = Nodes::start(&runtime, &server.url(), count, &mut random);
    for _ in 0..soak::number("ONWARD_ROUNDS").unwrap_or(6) {
        let facts = nodes.receive(random.usize(1..400));
        let how = [Crash::Immediate, Crash::Fast, Crash::OneProcess][random.usize(0..3)];
        server.crash(how, || (0..random.u32(0..1_000_000)).for_each(|_| std::hint::spin_loop()));
        let node = random.usize(0..count);
        runtime.block_on(nodes.examine(node, facts, &mut known, &mut tally));
    }
    runtime.block_on(nodes.stop(&tally));
    println!("{}", tally.sum);
    assert_eq!((tally.sum.lost, tally.sum.duplicated), (0, 0), "{}", tally.complaints.join("\n"));
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Nodes that work on one store, each with connections of its own.
struct Nodes {
    stores: Vec<Arc<dyn Store>>,
    loads: Vec<JoinHandle<()>>,
    facts: Receiver<Fact>,
    gate: Arc<RwLock<()>>,
}

impl Nodes {
    fn start(runtime: &Runtime, url: &str, count: usize, random: &mut fastrand::Rng) -> Self {
        let (sender, facts) = channel();
        let (mut stores, mut loads, gate) = (Vec::new(), Vec::new(), Arc::<RwLock<()>>::default());
        for _ in 0..count {
            let store = runtime.block_on(PostgresStore::options().readers(1).open(url)).expect("a store opens");
            let store: Arc<dyn Store> = Arc::new(store);
            let sender = sender.clone();
            let say = Arc::new(move |fact| sender.send(fact).expect("somebody listens"));
            let load = Load { store: Arc::clone(&store), say, lease: LEASE, gate: Arc::clone(&gate) };
            loads.push(runtime.spawn(load.run(random.u64(..))));
            stores.push(store);
        }
        Self { stores, loads, facts, gate }
    }

    /// Receives `count` facts.
    fn receive(&self, count: usize) -> Vec<Fact> {
        (0..count).map(|_| self.facts.recv_timeout(SILENCE).expect("the nodes go on")).collect()
    }

    /// Waits until every call under way has returned, and compares the facts with the store as one
    /// of the nodes sees it.
    async fn examine(&self, node: usize, mut facts: Vec<Fact>, known: &mut Known, tally: &mut Tally) {
        let _quiet = timeout(SILENCE, self.gate.write()).await.expect("every call is answered");
        assert!(self.loads.iter().all(|load| !load.is_finished()), "a node gave up");
        facts.extend(self.facts.try_iter());
        tally.sum.recovered += known.completed_since(&facts);
        known.learn(&facts, tally);
        known.examine(&*self.stores[node], usize::MAX, tally).await;
        known.examine_sizes(&*self.stores[node], tally).await;
    }

    /// Stops the load, and checks that no task is held for ever.
    async fn stop(self, tally: &Tally) {
        let _quiet = self.gate.write().await;
        self.loads.iter().for_each(JoinHandle::abort);
        let store = &*self.stores[0];
        close_sessions(store).await;
        let running: u64 = store.queues().await.unwrap().iter().map(|queue| queue.running).sum();
        assert_eq!(running, 0, "seed {}: nobody is there, and tasks are held", tally.sum.seed);
    }
}
