//! The costs of orchestrations, and their bounds.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use onward::orchestration::{Either, HistoryEvent, OrchestrationContext, OrchestrationStatus, select};
use onward::{Engine, NewTask, Task, TaskFilter, TaskId, TaskState};
use onward_store::{Read, ReadReply, Recipient, Store, StoreDecorator, StoreFuture, StoreReads};
use onward_testkit::{Fault, FaultyStore, Side};
use serde::{Deserialize, Serialize};

use crate::fixture::{SECOND, TestStore, start as start_run, state, stop};
use crate::orchestrations::{Double, Work, engine, finish, start};

on_every_store! {
    a_store_whose_reads_are_busy_once_fails_no_orchestration,
    a_store_that_is_busy_once_fails_no_orchestration,
    no_more_orchestrations_stay_in_memory_than_are_to_be_kept,
    what_comes_for_an_orchestration_in_memory_reads_no_history,
    an_engine_without_the_code_of_an_orchestration_reads_nothing_of_it,
    a_chain_whose_activities_are_done_elsewhere_goes_on_while_the_clock_stands_still,
    nothing_that_is_passed_to_and_from_an_orchestration_that_has_ended_stays_in_memory,
    nothing_of_an_orchestration_that_has_ended_stays_in_memory,
    an_event_without_a_recipient_is_refused_and_affects_no_other,
    what_is_detached_in_the_turn_that_continues_as_new_is_started,
    what_is_random_and_the_time_cost_no_event,
}

/// A store that counts how often a history is read.
#[derive(Debug)]
struct Reads {
    inner: Arc<dyn Store>,
    histories: AtomicU64,
}

impl StoreDecorator for Reads {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        if matches!(read, Read::InstanceHistory { .. }) {
            self.histories.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.read(read)
    }
}

async fn ten_doublings(work: Work, context: OrchestrationContext) -> Result<String, onward::Failure> {
    let mut number = work.0;
    for _ in 0..10 {
        number = context.activity(Double(number)).await?;
    }
    Ok(number.to_string())
}

/// Shows: D11
/// Beats: whole-history-per-event
async fn what_comes_for_an_orchestration_in_memory_reads_no_history(store: TestStore) {
    let reads = Arc::new(Reads { inner: store.shared(), histories: AtomicU64::new(0) });
    let engine = Engine::builder().store(reads.clone()).open().await.unwrap();
    engine.register(|task: Double, _| async move { Ok(task.0 * 2) });
    engine.orchestrate(ten_doublings);
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "7168");
    assert_eq!(reads.histories.load(Ordering::SeqCst), 0);
}

/// Shows: D11
async fn an_engine_without_the_code_of_an_orchestration_reads_nothing_of_it(store: TestStore) {
    let first = engine(&store, |_, context| async move { context.event::<String>("go")?.await }).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    first.signal(task, "go", &"on").await.unwrap();
    let reads = Arc::new(Reads { inner: store.shared(), histories: AtomicU64::new(0) });
    let without = Engine::builder().store(reads.clone()).open().await.unwrap();
    without.handle_any(|_| async { Ok::<_, onward::Failure>("done") });
    without.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Waiting, "it was claimed");
    assert_eq!(reads.histories.load(Ordering::SeqCst), 0);
}

/// In an engine that does both, an end frees a slot, so that the engine looks for work in any case.
///
/// Shows: D11
/// Beats: polled-steps
async fn a_chain_whose_activities_are_done_elsewhere_goes_on_while_the_clock_stands_still(store: TestStore) {
    let (thinks, doubles) = (store.engine().await, store.engine().await);
    thinks.orchestrate(ten_doublings);
    doubles.register(|task: Double, _| async move { Ok(task.0 * 2) });
    let runs = [start_run(&thinks), start_run(&doubles)];
    let task = start(&thinks).await;
    assert_eq!(thinks.wait(task).await.unwrap().state, TaskState::Completed);
    for (engine, run) in [&thinks, &doubles].into_iter().zip(runs) {
        stop(engine, run).await;
    }
}

/// The number of [`Counted`] values in memory.
static COUNTED: AtomicI64 = AtomicI64::new(0);

/// A value whose instances in memory are counted.
struct Counted;

impl Counted {
    fn new() -> Self {
        COUNTED.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COUNTED.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The input and output of an activity and of an orchestration.
#[derive(Serialize, Deserialize)]
struct Passed<const ORCHESTRATION: bool> {
    #[serde(skip, default = "Counted::new")]
    _counted: Counted,
}

impl<const ORCHESTRATION: bool> Passed<ORCHESTRATION> {
    fn new() -> Self {
        Self { _counted: Counted::new() }
    }
}

impl<const ORCHESTRATION: bool> Task for Passed<ORCHESTRATION> {
    const KIND: &'static str = if ORCHESTRATION { "pass-on" } else { "pass" };
    const ORCHESTRATION: bool = ORCHESTRATION;
    type Output = Self;
}

/// Passes its input to an activity and the result to a step, and awaits an event.
async fn pass_on(given: Passed<true>, context: OrchestrationContext) -> Result<Passed<true>, onward::Failure> {
    let passed = context.activity(Passed::<false>::new()).await?;
    let kept = context.step("pass", move || async move { Ok(passed) }).await?;
    let sent = context.event::<Passed<false>>("sent")?.await?;
    drop((kept, sent));
    Ok(given)
}

/// Shows: D11
/// Beats: leak-per-call
async fn nothing_that_is_passed_to_and_from_an_orchestration_that_has_ended_stays_in_memory(store: TestStore) {
    let engine = store.engine().await;
    engine.register(|given: Passed<false>, _| async move { Ok(given) });
    engine.orchestrate(pass_on);
    for _ in 0..3 {
        let running = engine.submit(Passed::<true>::new()).await.unwrap();
        engine.signal(running.id(), "sent", &Passed::<false>::new()).await.unwrap();
        engine.run_until_idle().await.unwrap();
        drop(running.wait().await.unwrap());
    }
    assert_eq!(COUNTED.load(Ordering::SeqCst), 0);
}

/// Shows: D11
/// Beats: leak-per-call
async fn nothing_of_an_orchestration_that_has_ended_stays_in_memory(store: TestStore) {
    let held = Arc::new(());
    let watched: Weak<()> = Arc::downgrade(&held);
    let engine = store.engine().await;
    engine.register(|task: Double, _| async move { Ok(task.0 * 2) });
    let code = move |_: Work, context: OrchestrationContext| {
        let (held, answering) = (Arc::clone(&held), context.clone());
        async move {
            let shared = Arc::clone(&held);
            context.on_query("held", move |()| Ok((Arc::strong_count(&shared), answering.random())));
            let doubled = context.activity(Double(1)).await?;
            Ok(format!("{doubled}{}", Arc::strong_count(&held).min(1)))
        }
    };
    engine.orchestrate(code);
    for _ in 0..3 {
        let task = start(&engine).await;
        assert_eq!(finish(&engine, task).await.unwrap(), "21");
    }
    assert_eq!(watched.strong_count(), 1, "only the code itself holds on to it");
}

/// Shows: D9
/// Beats: lock-fails-orchestration
async fn a_store_that_is_busy_once_fails_no_orchestration(store: TestStore) {
    for call in 1..=12 {
        let store = store.fresh().await;
        let faulty = Arc::new(FaultyStore::new(store.shared()));
        let engine = store.builder().store(faulty.clone()).open().await.unwrap();
        engine.register(|task: Double, _| async move { Ok(task.0 * 2) });
        engine.orchestrate(|work: Work, context: OrchestrationContext| async move {
            let number = context.step("number", move || async move { Ok(work.0) }).await?;
            Ok(context.activity(Double(number)).await?.to_string())
        });
        let task = start(&engine).await;
        faulty.fail_once(faulty.calls() + call, Side::Before, Fault::Busy);
        let running = engine.clone();
        let run = tokio::spawn(async move { running.run_until_idle().await });
        store.advance_until(SECOND, run).await.unwrap();
        assert_eq!(state(&store, task).await, TaskState::Completed, "call {call} failed");
    }
}

/// Drops an activity when an event arrives.
async fn let_go(_: Work, context: OrchestrationContext) -> Result<String, onward::Failure> {
    let slow = context.activity_task::<String>(NewTask::new("slow")?);
    match select(slow, context.event::<String>("enough")?).await {
        Either::First(said) => Ok(said?),
        Either::Second(said) => said,
    }
}

/// Shows: D9
/// Beats: lock-fails-orchestration
async fn a_store_whose_reads_are_busy_once_fails_no_orchestration(store: TestStore) {
    for read in 1..=6 {
        let store = store.fresh().await;
        let first = engine(&store, let_go).await;
        let task = start(&first).await;
        first.run_until_idle().await.unwrap();
        first.signal(task, "enough", &"over").await.unwrap();
        // The second engine reads the history.
        let faulty = Arc::new(FaultyStore::new(store.shared()));
        let second = store.builder().store(faulty.clone()).open().await.unwrap();
        second.orchestrate(let_go);
        faulty.fail_read_once(faulty.reads() + read, Fault::Busy);
        for _ in 0..10 {
            second.run_until_idle().await.unwrap();
            store.clock.advance(SECOND);
        }
        assert_eq!(state(&store, task).await, TaskState::Completed, "read {read} failed");
        assert_eq!(state(&store, TaskId(task.0 + 1)).await, TaskState::Cancelled);
        assert!(faulty.reads() >= 1, "it has read nothing");
    }
}

/// Shows: D3
/// Beats: event-for-nobody
async fn an_event_without_a_recipient_is_refused_and_affects_no_other(store: TestStore) {
    let engine = engine(&store, |_, context| async move { context.event::<String>("go")?.await }).await;
    let task = start(&engine).await;
    let unknown = engine.signal(TaskId(999), "go", &"lost").await.unwrap_err();
    assert!(unknown.is_not_found(), "{unknown}");
    let to = Recipient::Key { kind: onward::Name::new("work").unwrap(), key: "nobody".into() };
    engine.send(to, "go", "\"lost\"".into()).await.unwrap_err();
    engine.signal(task, "go", &"found").await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "found");
}

/// Shows: D4
/// Beats: lost-detached-start
async fn what_is_detached_in_the_turn_that_continues_as_new_is_started(store: TestStore) {
    let engine = engine(&store, |work: Work, context| async move {
        if work.0 == 7 {
            context.detach_task(NewTask::new("detached")?)?;
            return Err(context.continue_as_new(&Work(8)));
        }
        Ok("over".to_owned())
    })
    .await;
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "over");
    let detached = TaskId(task.0 + 1);
    assert_eq!(state(&store, detached).await, TaskState::Waiting);
    assert_eq!(store.count(TaskFilter::default()).await.unwrap(), 2);
}

/// Shows: D7
async fn what_is_random_and_the_time_cost_no_event(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        for _ in 0..1000 {
            let _ = (context.uuid(), context.random(), context.now());
        }
        Ok(String::new())
    })
    .await;
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap();
    let history = engine.orchestration_history(task).await.unwrap();
    assert!(matches!(history[..], [HistoryEvent::Started { .. }]), "{history:?}");
}

/// The three orchestrations take turns. With one kept, each has been evicted when its next event
/// arrives.
///
/// Shows: D11
async fn no_more_orchestrations_stay_in_memory_than_are_to_be_kept(store: TestStore) {
    for (kept, begun) in [(1, 9), (3, 3)] {
        let store = store.fresh().await;
        assert_eq!(begun_in_turn(&store, kept).await, begun);
    }
}

/// Returns how often code starts when three orchestrations have three turns each, one after the
/// other, and `kept` of them stay in memory.
async fn begun_in_turn(store: &TestStore, kept: usize) -> u64 {
    let begun = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&begun);
    let engine = store.builder().orchestrations_cached(kept).open().await.unwrap();
    engine.orchestrate(move |_: Work, context: OrchestrationContext| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            for turn in 0..3_u32 {
                context.set_status(&turn)?;
                context.event::<()>("go")?.await?;
            }
            Ok(String::new())
        }
    });
    let run = start_run(&engine);
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(start(&engine).await);
        is_at(&engine, *tasks.last().unwrap(), 0).await;
    }
    for (turn, task) in (1..3).flat_map(|turn| tasks.iter().map(move |task| (turn, *task))) {
        engine.signal(task, "go", &()).await.unwrap();
        is_at(&engine, task, turn).await;
    }
    stop(&engine, run).await;
    begun.load(Ordering::SeqCst)
}

/// Waits until an orchestration reports this turn as its status.
async fn is_at(engine: &Engine, task: TaskId, turn: u32) {
    let says = move |shown: &OrchestrationStatus| shown.status::<u32>().unwrap() == Some(turn);
    engine.wait_for_status(task, says).await.unwrap();
}
