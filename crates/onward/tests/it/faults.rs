//! The behaviour of an engine when its store fails.
//!
//! `ONWARD_ROUNDS` sets the number of tasks while each call of a drain fails in turn: twelve a
//! round (default: 1). More tasks make more calls. Nothing here is random, so the seed in the lines
//! for `cargo xtask soak` is always 0.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onward::observe::{Change, EventCursor};
use onward::task::{OnDuplicate, UniqueKey};
use onward::{Engine, Failure, Store, Submitted, TaskId, TaskState};
use onward_store::{Error, Outcome, StoreFuture, StoreReads, Write};
use onward_testkit::soak::{self, Tally};
use onward_testkit::{Fault, FaultyStore, Side};

use crate::fixture::{SECOND, TestStore, start_drain, task};

on_every_store! {
    no_failing_call_loses_a_task,
    no_lost_answer_loses_a_task,
    a_submit_repeated_because_its_answer_was_lost_finds_its_task,
    an_engine_goes_on_when_its_store_has_been_mended,
    a_task_that_arrives_as_a_drain_is_about_to_end_is_run,
    a_store_that_fails_for_good_ends_the_run_with_its_error,
}

const TASKS: usize = 12;

/// Opens an engine on a store, and submits `tasks` tasks to it. Every second task fails at its
/// first attempt.
async fn engine_on(store: &TestStore, faulty: Arc<dyn Store>, tasks: usize) -> (Engine, Vec<TaskId>) {
    let submitted = store.engine().await.submit_all(vec![task("any"); tasks]).await.unwrap();
    let engine = Engine::builder().store(faulty).concurrency(2).retry(again_at_once()).open().await.unwrap();
    engine.handle("any", |context| async move {
        if context.id().0 % 2 == 0 && context.attempt() == 1 { Err(Failure::retryable("at first")) } else { Ok(()) }
    });
    (engine, submitted.into_iter().map(Submitted::id).collect())
}

fn again_at_once() -> onward::RetryPolicy {
    onward::RetryPolicy { attempts: 9, backoff: onward::Backoff::Constant { delay: std::time::Duration::ZERO } }
}

async fn assert_all_completed(store: &TestStore, tasks: &[TaskId], what: &str) {
    for task in tasks {
        let record = store.task(*task).await.unwrap().unwrap();
        assert_eq!(record.state, TaskState::Completed, "{what}: task {task}");
    }
}

/// The way in which the store fails from a call on: the error, the side of the change, and whether
/// the failure lasts.
#[derive(Debug, Clone, Copy)]
struct Failing {
    fault: Fault,
    side: Side,
    for_good: bool,
}

/// The number of calls that fail on a lasting fault before the store is repaired.
const FAILURES: u64 = 3;

/// Fails each call of a drain in turn, with every error, once and lasting, until there are no more
/// calls.
async fn fail_each_call_in_turn(store: &TestStore, side: Side) {
    // On a server each call takes milliseconds, so there are fewer tasks, which halves the calls
    // and so the drains.
    let tasks = if store.is_on_server() { TASKS / 3 } else { TASKS };
    let tasks = tasks * soak::number("ONWARD_ROUNDS").map_or(1, |rounds| usize::try_from(rounds).unwrap());
    let mut drains = Drains { store, tasks, tally: Tally::default(), seen: EventCursor::START };
    for fault in Fault::ALL {
        for for_good in [false, true] {
            let failing = Failing { fault, side, for_good };
            let mut number = 1;
            while drains.drain_while_failing(failing, number).await {
                drains.tally.recovered += 1;
                number += 1;
            }
        }
    }
    println!("{}", drains.tally);
}

/// Consecutive drains of one store.
struct Drains<'a> {
    store: &'a TestStore,
    /// The number of tasks of each drain.
    tasks: usize,
    tally: Tally,
    /// The end of the events of earlier drains.
    seen: EventCursor,
}

impl Drains<'_> {
    /// Drains while the call with this number fails, and the following ones if the failure lasts.
    /// Returns whether there were that many calls.
    async fn drain_while_failing(&mut self, failing: Failing, number: u64) -> bool {
        let Failing { fault, side, for_good } = failing;
        let store = self.store;
        let faulty = Arc::new(FaultyStore::new(store.shared()));
        let (engine, tasks) = engine_on(store, faulty.clone(), self.tasks).await;
        if for_good {
            faulty.fail_from(number, side, fault);
        } else {
            faulty.fail_once(number, side, fault);
        }
        let drain = start_drain(&engine);
        while for_good && !drain.is_finished() && faulty.calls() < number + FAILURES {
            store.advance(SECOND).await;
        }
        faulty.heal();
        store.advance_until(SECOND / 10, drain).await;
        self.count(&tasks).await;
        assert_eq!((self.tally.lost, self.tally.duplicated), (0, 0), "{failing:?}, call {number}");
        faulty.calls() >= number
    }

    /// Counts the tasks that are not completed, and those that were completed twice.
    async fn count(&mut self, tasks: &[TaskId]) {
        let mut completions: HashMap<TaskId, u64> = HashMap::new();
        loop {
            let page = self.store.events(self.seen, 1000).await.unwrap();
            self.seen = page.next;
            if page.events.is_empty() {
                break;
            }
            let completed = page.events.iter().filter(|event| event.change == Change::Completed);
            completed.for_each(|event| *completions.entry(event.task).or_default() += 1);
        }
        let tally = &mut self.tally;
        tally.attempted += tasks.len() as u64;
        tally.acknowledged += tasks.len() as u64;
        tally.duplicated += completions.values().map(|times| times - 1).sum::<u64>();
        for task in tasks {
            let record = self.store.task(*task).await.unwrap();
            let is_completed = record.is_some_and(|record| record.state == TaskState::Completed);
            tally.lost += u64::from(!is_completed || !completions.contains_key(task));
        }
    }
}

/// Shows: T21
/// Beats: wedged-store
async fn no_failing_call_loses_a_task(store: TestStore) {
    fail_each_call_in_turn(&store, Side::Before).await;
}

/// Shows: T21
async fn no_lost_answer_loses_a_task(store: TestStore) {
    fail_each_call_in_turn(&store, Side::After).await;
}

/// Shows: T3
async fn a_submit_repeated_because_its_answer_was_lost_finds_its_task(store: TestStore) {
    let faulty = Arc::new(FaultyStore::new(store.shared()));
    let engine = store.builder().store(faulty.clone()).open().await.unwrap();
    let mut once = task("any");
    once.unique = Some(UniqueKey { key: "order 7".into(), on_duplicate: OnDuplicate::Skip, keep_for: SECOND });
    faulty.fail_once(1, Side::After, Fault::Timeout);
    let first = tokio::spawn({
        let (engine, once) = (engine.clone(), once.clone());
        async move { engine.submit_task(once).await }
    });
    store.advance_until(SECOND, first).await.unwrap_err();
    let again = engine.submit_task(once).await.unwrap();
    assert_eq!(again, Submitted::Duplicate { id: TaskId(1) });
}

/// Shows: T21
async fn an_engine_goes_on_when_its_store_has_been_mended(store: TestStore) {
    let faulty = Arc::new(FaultyStore::new(store.shared()));
    let (engine, tasks) = engine_on(&store, faulty.clone(), TASKS).await;
    faulty.fail_from(3, Side::Before, Fault::Io);
    let drain = start_drain(&engine);
    while faulty.calls() < 10 {
        store.advance(SECOND).await;
    }
    faulty.heal();
    store.advance_until(SECOND, drain).await;
    assert_all_completed(&store, &tasks, "mended").await;
}

/// The hint arrives when a drain has found no more tasks and checks whether that was all.
///
/// Shows: T21
/// Beats: lost-wake-ups
async fn a_task_that_arrives_as_a_drain_is_about_to_end_is_run(store: TestStore) {
    let faulty = Arc::new(FaultyStore::new(store.shared()));
    let (engine, tasks) = engine_on(&store, faulty.clone(), 1).await;
    faulty.slip_in(vec![Write::Submit(Box::new(task("any")))]);
    tokio::time::timeout(PATIENCE, engine.drain()).await.expect("the drain goes on").unwrap();
    assert_all_completed(&store, &[tasks[0], TaskId(2)], "drained").await;
}

/// The time limit of a wait. A longer wait is a failure.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// Shows: T21
async fn a_store_that_fails_for_good_ends_the_run_with_its_error(store: TestStore) {
    let damaged = Damaged { store: store.shared(), calls: AtomicUsize::new(0) };
    let (engine, _) = engine_on(&store, Arc::new(damaged), TASKS).await;
    let run = tokio::spawn(async move { engine.drain().await.unwrap_err() });
    let error = store.advance_until(SECOND, run).await;
    assert!(error.is_corrupt(), "{error}");
}

/// A store that reports damage at the third call.
#[derive(Debug)]
struct Damaged {
    store: Arc<dyn Store>,
    calls: AtomicUsize,
}

impl onward_store::StoreDecorator for Damaged {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        if self.calls.fetch_add(1, Ordering::SeqCst) < 2 {
            return self.store.apply(writes);
        }
        Box::pin(async { Err(Error::corrupt("page 7 is damaged; restore a backup")) })
    }
}
