//! The world of a run: the clock, the store, the network and the nodes, and what happens to them.

use std::sync::Arc;
use std::time::Duration;

use onward::limits::SetLimit;
use onward::testing::ManualClock;
use onward_store::{Clock as _, MemoryStore, Store, Timestamp, Write};

use super::checks::{self, Checks};
use super::network::{Network, Server, at_once};
use super::node::{LEASE, Node};
use super::trace::Trace;
use super::work::{Acknowledged, LIMITED, Work};

/// The number of events while faults happen.
const EVENTS: u32 = 600;

/// The number of seconds within which everything must have ended after the last fault.
const SECONDS_TO_THE_END: u32 = 600;

/// The number of rounds in which everything that can happen at one time must have happened.
const ROUNDS_TO_REST: u32 = 5_000;

/// The rounds of a node's tasks in one event: enough that a reply leads to the next call.
const ROUNDS: u32 = 12;

/// The number of the first client; workers count from 0.
const CLIENTS: u32 = 100;

pub(super) struct World {
    random: fastrand::Rng,
    clock: Arc<ManualClock>,
    store: Arc<dyn Store>,
    network: Arc<Network>,
    server: Arc<Server>,
    trace: Arc<Trace>,
    workers: Vec<Node>,
    clients: Vec<Node>,
    /// The number of workers started so far.
    started: u32,
    /// The latest wall time before a jump.
    latest: Timestamp,
    work: Work,
}

impl World {
    pub(super) fn new(seed: u64, trace: Arc<Trace>) -> Self {
        // Engines draw from the generator of their thread.
        fastrand::seed(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let clock = Arc::new(ManualClock::default());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()));
        let limit = SetLimit::group(LIMITED.0.parse().unwrap()).concurrency(LIMITED.1);
        at_once(store.apply(vec![Write::SetLimit(limit)])).unwrap();
        let network = Arc::new(Network::new(seed, Arc::clone(&clock)));
        let checks = Arc::new(Checks::default());
        let server = Server::new(Arc::clone(&store), Arc::clone(&network), checks, Arc::clone(&trace));
        let server = Arc::new(server);
        let work = Work::random(seed);
        let clients = vec![
            Node::client(&server, CLIENTS, true, work.clone()),
            Node::client(&server, CLIENTS + 1, false, work.signals()),
        ];
        let started = random.u32(1..4);
        let workers = (0..started).map(|number| Node::worker(&server, number, &clock)).collect();
        let latest = clock.now();
        Self { random, clock, latest, store, network, server, trace, workers, clients, started, work }
    }

    /// Lets faults happen, then lets everything end, and checks the results. Returns the number of
    /// tasks.
    pub(super) fn run(mut self) -> u64 {
        for _ in 0..EVENTS {
            self.event();
        }
        self.heal();
        self.end();
        let acknowledged: Acknowledged = self.work.acknowledged();
        checks::results(&*self.store, &acknowledged, self.work.tasks());
        self.work.tasks()
    }

    /// One random event.
    fn event(&mut self) {
        let event = self.random.u32(0..1000);
        self.trace.add(|| format!("event {event}"));
        match event {
            0..500 => self.run_a_node(),
            500..850 => drop(self.network.deliver()),
            850..960 => self.clock.advance(Duration::from_millis(self.random.u64(1..300))),
            960..970 => self.nodes().for_each(|node| node.hint()),
            970..975 => self.jump(),
            975..985 => self.crash_or_pause(),
            _ => self.recover(),
        }
    }

    fn run_a_node(&mut self) {
        let all = self.workers.len() + self.clients.len();
        let chosen = self.random.usize(0..all);
        self.nodes().nth(chosen).unwrap().run(ROUNDS);
    }

    fn nodes(&mut self) -> impl Iterator<Item = &mut Node> {
        self.workers.iter_mut().chain(&mut self.clients)
    }

    /// Sets the wall clock, as a person or a time service does.
    fn jump(&mut self) {
        let hour = 3_600_000_000;
        let by = self.random.i64(-hour..hour);
        self.latest = self.latest.max(self.clock.now());
        self.clock.set_wall(Timestamp::from_microseconds(self.clock.now().as_microseconds() + by));
    }

    fn crash_or_pause(&mut self) {
        let chosen = self.random.usize(0..self.workers.len());
        if !self.workers[chosen].is_up() || !self.network.take_lease_fault() {
            return;
        }
        if self.random.bool() {
            self.workers[chosen].crash();
        } else {
            self.workers[chosen].pause();
            // The node misses the end of its leases, and tries to go on later.
            self.clock.advance(LEASE + Duration::from_secs(self.random.u64(0..3)));
        }
    }

    /// Starts a process again that crashed, or resumes one that was paused.
    fn recover(&mut self) {
        let chosen = self.random.usize(0..self.workers.len());
        self.recover_worker(chosen);
    }

    fn recover_worker(&mut self, chosen: usize) {
        if self.workers[chosen].has_crashed() {
            self.workers[chosen] = Node::worker(&self.server, self.started, &self.clock);
            self.started += 1;
        }
        self.workers[chosen].resume();
    }

    /// Ends all faults. The wall clock is set to the latest time that it ever had, so that nothing
    /// waits for the end of a jump.
    fn heal(&mut self) {
        self.network.heal();
        self.clock.set_wall(self.latest.max(self.clock.now()));
        (0..self.workers.len()).for_each(|worker| self.recover_worker(worker));
    }

    /// Lets everything happen that can, then moves the clock, until everything has ended.
    fn end(&mut self) {
        for _ in 0..SECONDS_TO_THE_END {
            self.settle();
            if self.work.is_submitted() && checks::live(&*self.store).is_empty() {
                return;
            }
            self.clock.advance(Duration::from_secs(1));
        }
        let (now, is_submitted) = (self.clock.now(), self.work.is_submitted());
        panic!("no progress after the faults, at {now}; submitted: {is_submitted}; live: {:?}", self.live());
    }

    fn settle(&mut self) {
        for _ in 0..ROUNDS_TO_REST {
            for node in self.nodes() {
                node.hint();
                node.run(ROUNDS);
            }
            if !self.network.deliver() {
                return;
            }
            while self.network.deliver() {}
        }
        panic!("no rest: nodes call the store without end, at {}; live: {:?}", self.clock.now(), self.live());
    }

    /// Returns what has not ended, for the report of a failure.
    fn live(&self) -> Vec<String> {
        let live = checks::live(&*self.store).into_iter();
        live.map(|task| format!("{} {} {:?} {}", task.id, task.kind, task.state, task.run_at)).collect()
    }
}
