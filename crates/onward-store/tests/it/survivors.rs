//! Kills (`kill -9`) one of three processes on a file under load, while the others continue. No
//! acknowledged write is lost, nothing happens twice, and the others neither stop nor wait for it.
//!
//! The rounds and the seed are those of [`kill`](crate::kill), because this is a part of its soak.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use onward_store::{Durability, NewTask, Outcome, SqliteStore, Store, Write};
use onward_testkit::soak;
use tokio::runtime::Runtime;

use crate::child::{Process, Speech};
use crate::kill;
use crate::ledger::{Known, Tally};
use crate::load::{self, Fact};

const PROCESSES: usize = 3;
/// The longest time without a fact. A longer silence is a failure.
const SILENCE: Duration = Duration::from_secs(60);

/// Shows: T21, B4
#[test]
fn one_of_three_processes_killed_in_class_full_loses_and_doubles_nothing_and_the_others_go_on() {
    run(Durability::Full);
}

/// Shows: T21, B4
#[test]
fn one_of_three_processes_killed_in_class_normal_loses_and_doubles_nothing_and_the_others_go_on() {
    run(Durability::Normal);
}

fn run(class: Durability) {
    let mut tally = Tally::default();
    tally.sum.seed = soak::seed();
    let mut random = fastrand::Rng::with_seed(tally.sum.seed ^ class as u64);
    let mut left = kill::rounds();
    while left > 0 {
        let here = left.min(kill::ROUNDS_PER_FILE);
        cycles(class, here, &mut random, &mut tally);
        left -= here;
    }
    println!("{}", tally.sum);
    assert_eq!((tally.sum.lost, tally.sum.duplicated), (0, 0), "{}", tally.complaints.join("\n"));
}

/// Kills one process on a file after the other, and starts another in its place.
fn cycles(class: Durability, rounds: u64, random: &mut fastrand::Rng, tally: &mut Tally) {
    let directory = tempfile::tempdir().unwrap();
    let mut crew = Crew::start(&directory.path().join("onward.db"), class, random);
    for _ in 0..rounds {
        crew.receive(random.usize(1..400));
        // The moment right after a report is not random, so a random delay follows.
        (0..random.u32(0..1_000_000)).for_each(|_| std::hint::spin_loop());
        let victim = random.usize(0..PROCESSES);
        crew.kill(victim);
        crew.await_progress();
        crew.examine(tally);
        crew.add(random);
    }
    tally.sum.recovered += crew.known.taken_back();
}

/// A process that works as fast as it can.
struct Worker {
    process: Process,
    /// The number of the process among all that were started.
    number: usize,
    reader: JoinHandle<()>,
}

/// Processes on one file, a store of the test on the same file, and the reported facts.
struct Crew {
    path: PathBuf,
    class: Durability,
    runtime: Runtime,
    store: SqliteStore,
    workers: Vec<Worker>,
    started: usize,
    sender: Sender<(usize, Fact)>,
    facts: Receiver<(usize, Fact)>,
    /// The facts since the last examination.
    received: Vec<Fact>,
    known: Known,
}

impl Crew {
    fn start(path: &Path, class: Durability, random: &mut fastrand::Rng) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = runtime.block_on(SqliteStore::options().durability(class).open(path)).expect("a store opens");
        let (sender, facts) = channel();
        let (workers, received, known) = (Vec::new(), Vec::new(), Known::default());
        let mut crew =
            Self { path: path.into(), class, runtime, store, workers, started: 0, sender, facts, received, known };
        (0..PROCESSES).for_each(|_| crew.add(random));
        crew
    }

    fn add(&mut self, random: &mut fastrand::Rng) {
        let place = self.path.display().to_string();
        let (process, speech) = load::start(&place, self.class, kill::LEASE, random.u64(..));
        self.started += 1;
        let reader = read_aside(speech, self.started, self.sender.clone());
        self.workers.push(Worker { process, number: self.started, reader });
    }

    /// Receives `count` facts.
    fn receive(&mut self, count: usize) {
        for _ in 0..count {
            self.receive_one();
        }
    }

    fn receive_one(&mut self) -> (usize, Fact) {
        let said = self.facts.recv_timeout(SILENCE).expect("those that live go on");
        self.received.push(said.1);
        said
    }

    /// Waits until each process has reported such a fact.
    fn receive_from_all(&mut self, is_meant: impl Fn(Fact) -> bool) {
        let mut silent: HashSet<usize> = self.workers.iter().map(|worker| worker.number).collect();
        while !silent.is_empty() {
            let (number, fact) = self.receive_one();
            if is_meant(fact) {
                silent.remove(&number);
            }
        }
    }

    /// Kills a process. Returns when it is gone and all its facts are in the channel.
    fn kill(&mut self, victim: usize) {
        let mut worker = self.workers.swap_remove(victim);
        worker.process.kill();
        worker.reader.join().expect("what a process says can be read");
    }

    /// Waits until each of the others has submitted and completed a task after the death: after a
    /// task that was submitted when the process was dead.
    fn await_progress(&mut self) {
        let dead = self.submit();
        self.receive_from_all(|fact| matches!(fact, Fact::Submitted(id) if id > dead));
        self.receive_from_all(|fact| matches!(fact, Fact::Completed(_)));
    }

    fn submit(&mut self) -> i64 {
        let submit = Write::Submit(Box::new(NewTask::new("mail").unwrap()));
        let outcomes = self.runtime.block_on(self.store.apply(vec![submit])).expect("a submit is taken");
        let Outcome::Submitted(submitted) = outcomes[0] else { panic!("a submit answered {outcomes:?}") };
        self.received.extend([Fact::Attempted(1), Fact::Submitted(submitted.id().0)]);
        submitted.id().0
    }

    /// Makes the others finish their calls under way, and compares the facts with the store.
    fn examine(&mut self, tally: &mut Tally) {
        self.send(load::HOLD);
        self.receive_from_all(|fact| fact == Fact::Quiet);
        let Self { runtime, store, known, received, .. } = self;
        known.learn(&std::mem::take(received), tally);
        runtime.block_on(async {
            store.apply(vec![Write::Sweep]).await.expect("a sweep is taken");
            known.examine(store, usize::MAX, tally).await;
            known.examine_sizes(store, tally).await;
            kill::assert_sound(store, tally).await;
        });
        self.send(load::GO_ON);
    }

    fn send(&mut self, order: &str) {
        self.workers.iter_mut().for_each(|worker| worker.process.send(order));
    }
}

fn read_aside(speech: Speech, number: usize, sender: Sender<(usize, Fact)>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in speech {
            // The send fails when the test is over, which is fine.
            let _ = sender.send((number, Fact::parse(&line)));
        }
    })
}
