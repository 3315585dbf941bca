//! Tests of the harness itself. It must find stores that are wrong, and its sequences must reach
//! everything that can happen.

use std::collections::BTreeSet;
use std::sync::Arc;

use onward_store::{
    Clock, ManualClock, MemoryStore, Outcome, Read, ReadReply, Refusal, Store, StoreFuture, StoreReads, Write,
};
use onward_testkit::model_based::{Pick, STEPS, Trace, check, find_difference, generator, sequences};
use onward_testkit::soak::Tally;
use onward_testkit::{Conditions, Fault, FaultyStore, Fixture, MemoryFixture, Opening, Side, StoreLocation};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};

/// A fixture of stores that are wrong in the way of its function.
#[derive(Debug, Clone)]
struct Wrong(Open);

/// A function that opens a store, given the one that was open before.
type Open = fn(&Conditions, Option<Arc<dyn Store>>) -> Arc<dyn Store>;

#[derive(Debug)]
struct WrongLocation(Wrong, Option<Arc<dyn Store>>);

impl Fixture for Wrong {
    fn location(&self) -> Box<dyn StoreLocation> {
        Box::new(WrongLocation(self.clone(), None))
    }
}

impl StoreLocation for WrongLocation {
    fn open(&mut self, conditions: &Conditions) -> Opening<'_> {
        let store = (self.0.0)(conditions, self.1.take());
        self.1 = Some(Arc::clone(&store));
        Box::pin(async {
            close_sessions(&*store).await;
            store
        })
    }
}

/// Closes every session, as a store does when it is closed. Ignores an error, because a store that
/// fails on purpose may fail here.
async fn close_sessions(store: &dyn Store) {
    let sessions = store.sessions().await.expect("the sessions can be read");
    let closes = sessions.into_iter().map(|session| Write::CloseSession { session: session.id });
    drop(store.apply(closes.collect()).await);
}

fn memory(clock: Arc<dyn Clock>, payload_limit: usize) -> Arc<dyn Store> {
    Arc::new(MemoryStore::with_clock(clock).with_payload_limit(payload_limit).expect("the limit is low"))
}

fn difference(wrong: Wrong) -> String {
    find_difference(&MemoryFixture, &wrong, 256, 1, 7).difference.expect("the difference should have been found")
}

#[test]
fn a_store_that_forgets_what_it_had_is_found() {
    let found = difference(Wrong(|conditions, _| memory(conditions.clock.clone(), conditions.payload_limit)));
    assert!(found.contains("Reopen"), "{found}");
}

#[test]
fn a_store_with_a_clock_of_its_own_is_found() {
    let found = difference(Wrong(|conditions, last| {
        last.unwrap_or_else(|| memory(Arc::<ManualClock>::default(), conditions.payload_limit))
    }));
    assert!(found.contains("Advance") || found.contains("SetBack"), "{found}");
}

#[test]
fn a_store_that_takes_too_large_a_payload_is_found() {
    let found = difference(Wrong(|conditions, last| {
        last.unwrap_or_else(|| memory(conditions.clock.clone(), conditions.payload_limit + 1))
    }));
    assert!(found.contains("Submit") || found.contains("SetSchedule"), "{found}");
}

#[test]
fn a_store_that_fails_is_found() {
    let found = difference(Wrong(|conditions, last| {
        last.unwrap_or_else(|| {
            let faulty = FaultyStore::new(memory(conditions.clock.clone(), conditions.payload_limit));
            faulty.fail_once(3, Side::After, Fault::Io);
            Arc::new(faulty)
        })
    }));
    assert!(found.contains("a store failed"), "{found}");
}

/// A store that forgets how many tasks ended on each day.
#[derive(Debug)]
struct WithoutHistory(Arc<dyn Store>);

impl onward_store::StoreDecorator for WithoutHistory {
    fn inner(&self) -> &dyn Store {
        &*self.0
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        match read {
            Read::History { .. } => Box::pin(std::future::ready(Ok(ReadReply::History(Vec::new())))),
            _ => self.0.read(read),
        }
    }
}

#[test]
fn a_store_that_forgets_its_days_is_found() {
    let found = difference(Wrong(|conditions, last| {
        last.unwrap_or_else(|| Arc::new(WithoutHistory(memory(conditions.clock.clone(), conditions.payload_limit))))
    }));
    assert!(found.contains("QueueDay"), "{found}");
}

#[test]
fn a_found_sequence_is_short() {
    let found = difference(Wrong(|conditions, _| memory(conditions.clock.clone(), conditions.payload_limit)));
    let steps = found.matches("Apply(").count() + found.matches("Reopen").count();
    assert!(steps <= 3, "{found}");
}

#[test]
fn equal_sequences_are_counted() {
    let Tally { attempted, acknowledged, lost, recovered, seed, .. } =
        find_difference(&MemoryFixture, &MemoryFixture, 20, 1, 7).tally;
    assert_eq!((attempted, acknowledged, lost, seed), (20, 20, 0, 7));
    assert!(recovered > 0, "no sequence had a restart");
}

#[test]
fn a_mismatch_is_counted_once() {
    let wrong = Wrong(|conditions, _| memory(conditions.clock.clone(), conditions.payload_limit));
    let Tally { attempted, acknowledged, lost, .. } = find_difference(&MemoryFixture, &wrong, 256, 1, 7).tally;
    assert_eq!((acknowledged, lost), (attempted - 1, 1));
}

/// Asserts that sequences reach every expected variant, of those that `variants` finds in a trace.
/// It plays sequences until they do, at most `cases`. The seed is fixed, so that what they reach
/// does not change from run to run.
fn assert_reached(expected: &str, cases: usize, variants: impl Fn(&Trace, &mut BTreeSet<String>)) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be made");
    let mut runner = TestRunner::new_with_rng(Config::default(), generator(1));
    let (mut reached, mut missing) = (BTreeSet::new(), expected.split_whitespace().collect::<Vec<_>>());
    for _ in 0..cases {
        let steps = sequences(STEPS).new_tree(&mut runner).expect("sequences are not filtered").current();
        let trace = runtime.block_on(check(&MemoryFixture, &MemoryFixture, &steps)).expect("memory agrees with itself");
        variants(&trace, &mut reached);
        missing.retain(|variant| !reached.contains(*variant));
        if missing.is_empty() {
            return;
        }
    }
    panic!("no sequence reached {missing:?}, only {reached:?}");
}

fn variant(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

fn variants_of(outcome: &Outcome, into: &mut BTreeSet<String>) {
    into.insert(variant(outcome));
    match outcome {
        Outcome::Submitted(submitted) => drop(into.insert(variant(submitted))),
        Outcome::Ended(ended) => into.extend(ended.turned.as_ref().map(|_| "WithTurn".to_owned())),
        Outcome::ScheduleFired(fired) => into.extend(fired.firings.iter().map(variant)),
        Outcome::Refused(Refusal::InAll { refusal, .. }) => into.extend(["InAll".to_owned(), variant(refusal)]),
        Outcome::Refused(refusal) => drop(into.insert(variant(refusal))),
        Outcome::All(outcomes) => outcomes.iter().for_each(|outcome| variants_of(outcome, into)),
        _ => {}
    }
}

#[test]
fn sequences_reach_every_outcome() {
    let outcomes = "Done Refused SessionOpened Renewed Submitted Claimed Failed AwaitsChildren Cancelled CancelRequested \
                    Removed QueueSet LimitSet Bulk ScheduleSet ScheduleFired DocumentPut DocumentDeleted Swept All Ended \
                    Turned";
    let submitted = "Inserted Duplicate PriorityRaised Requeued Superseded Rejected";
    let refusals = "Invalid TaskNotFound DependencyNotFound QueueNotFound SessionLost LeaseLost AlreadyEnded NotEnded \
                    KeyTaken QueueInUse ScheduleNotFound ScheduleChanged DocumentChanged StepOfRun InAll";
    let firings = "Skipped Pending Failed WithTurn";
    assert_reached(&[outcomes, submitted, refusals, firings].join(" "), 1600, |trace, reached| {
        trace.outcomes.iter().for_each(|outcome| variants_of(outcome, reached));
    });
}

#[test]
fn sequences_reach_every_change() {
    let expected = "Submitted Started Completed Retrying Failed Dead CancelRequested Cancelled Expired Released LeaseLost \
                    Retried PriorityRaised Purged Unblocked Blocked Batched";
    assert_reached(expected, 600, |trace, reached| reached.extend(trace.changes.iter().map(variant)));
}

#[test]
fn a_pick_counts_from_the_newest() {
    let picked = [0, 1, 2, 3].map(|index| Pick(index).of(&['a', 'b', 'c']));
    assert_eq!(picked, [Some('c'), Some('b'), Some('a'), Some('c')]);
}
