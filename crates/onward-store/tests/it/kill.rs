//! Kills processes (`kill -9`) at random moments under load. No acknowledged write is lost, and
//! nothing happens twice.
//!
//! `ONWARD_ROUNDS` sets the number of kills in all tests here (default: 50). `ONWARD_SEED` sets the
//! random seed (default: random).

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use onward_store::{Durability, Outcome, SqliteStore, Store, StoreReads, Write};
use onward_testkit::soak;

use crate::child::{Process, Speech};
use crate::ledger::{Known, Tally};
use crate::load::{self, Fact};

/// The number of tests that share the rounds, including those of [`survivors`](crate::survivors).
const TESTS: u64 = 6;
/// The lease, longer than a round. The death of a process is noticed by its lock, not by its lease.
pub(crate) const LEASE: Duration = Duration::from_secs(10);
/// The number of rounds after which a new file is used, so that examining it stays cheap.
pub(crate) const ROUNDS_PER_FILE: u64 = 50;

/// Shows: T21, B4
#[test]
fn one_process_killed_in_class_full_loses_and_doubles_nothing() {
    run(1, Durability::Full);
}

/// Shows: T21, B4
#[test]
fn one_process_killed_in_class_normal_loses_and_doubles_nothing() {
    run(1, Durability::Normal);
}

/// Shows: T21, B4
#[test]
fn three_processes_killed_in_class_full_lose_and_double_nothing() {
    run(3, Durability::Full);
}

/// Shows: T21, B4
#[test]
fn three_processes_killed_in_class_normal_lose_and_double_nothing() {
    run(3, Durability::Normal);
}

/// Returns the number of rounds of each test.
pub(crate) fn rounds() -> u64 {
    soak::number("ONWARD_ROUNDS").unwrap_or(50).div_ceil(TESTS).max(1)
}

fn run(processes: usize, class: Durability) {
    let seed = soak::seed();
    let mut random = fastrand::Rng::with_seed(seed ^ ((processes as u64) << 8) ^ class as u64);
    let mut tally = Tally::default();
    tally.sum.seed = seed;
    let mut left = rounds();
    while left > 0 {
        let here = left.min(ROUNDS_PER_FILE);
        cycles(processes, class, here, &mut random, &mut tally);
        left -= here;
    }
    println!("{}", tally.sum);
    assert_eq!((tally.sum.lost, tally.sum.duplicated), (0, 0), "{}", tally.complaints.join("\n"));
}

/// Kills processes on one file repeatedly.
fn cycles(processes: usize, class: Durability, rounds: u64, random: &mut fastrand::Rng, tally: &mut Tally) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut known = Known::default();
    for _ in 0..rounds {
        let facts = load_and_kill(processes, class, &path, random);
        known.learn(&facts, tally);
        runtime.block_on(examine(&path, class, &mut known, tally));
    }
}

/// Lets processes work until they have reported a random number of facts, and kills all of them at
/// once.
fn load_and_kill(processes: usize, class: Durability, path: &Path, random: &mut fastrand::Rng) -> Vec<Fact> {
    let (sender, receiver) = mpsc::channel();
    let mut children = Vec::new();
    let mut readers = Vec::new();
    for _ in 0..processes {
        let (child, speech) = load::start(&path.display().to_string(), class, LEASE, random.u64(..));
        children.push(child);
        readers.push(read_aside(speech, sender.clone()));
    }
    drop(sender);
    let enough = random.usize(1..400);
    let mut facts: Vec<Fact> = receiver.iter().take(enough).collect();
    // The moment right after a report is not random, so a random delay follows.
    (0..random.u32(0..1_000_000)).for_each(|_| std::hint::spin_loop());
    children.iter_mut().for_each(Process::signal_kill);
    children.iter_mut().for_each(Process::kill);
    facts.extend(receiver);
    readers.into_iter().for_each(|reader| reader.join().expect("what a process says can be read"));
    facts
}

fn read_aside(speech: Speech, sender: mpsc::Sender<Fact>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for line in speech {
            sender.send(Fact::parse(&line)).expect("the facts are received until all have been told");
        }
    })
}

/// Opens the file of the killed processes and compares it with the acknowledgements.
async fn examine(path: &Path, class: Durability, known: &mut Known, tally: &mut Tally) {
    let store = SqliteStore::options().durability(class).open(path).await.expect("the store opens again");
    known.examine(&store, usize::MAX, tally).await;
    take_back(&store, tally).await;
    known.examine_sizes(&store, tally).await;
    assert_sound(&store, tally).await;
}

/// Checks that neither SQLite nor the store finds a fault in the file.
pub(crate) async fn assert_sound(store: &SqliteStore, tally: &Tally) {
    let report = store.check().await.unwrap();
    assert_eq!(report.integrity, Vec::<String>::new(), "seed {}", tally.sum.seed);
    assert_eq!(report.consistency, Vec::<String>::new(), "seed {}", tally.sum.seed);
}

/// Checks that the tasks of the killed processes wait again at once. Their leases are over because
/// their locks are gone.
async fn take_back(store: &SqliteStore, tally: &mut Tally) {
    let outcomes = store.apply(vec![Write::Sweep]).await.unwrap();
    let Outcome::Swept(swept) = outcomes[0] else { panic!("a sweep answered {outcomes:?}") };
    tally.sum.recovered += swept.lost;
    let running: u64 = store.queues().await.unwrap().iter().map(|queue| queue.running).sum();
    assert_eq!(running, 0, "seed {}: a killed process still holds tasks", tally.sum.seed);
}
