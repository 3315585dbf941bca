//! The choice of engines among queues, and the number of tasks of each that they run.

use onward_store::StoreReads;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use onward::observe::{Change, EventCursor};
use onward::queues::{QueueMode, QueueSettings, Scope, SetQueue};
use onward::{Engine, EngineBuilder, Failure, Name, NewTask, TaskId, TaskState};
use tokio::task::JoinHandle;

use crate::fixture::{Gate, TestStore, start, start_drain, stop, task};

on_every_store! {
    no_buffered_task_is_lost_at_a_stop,
    a_queue_of_low_weight_does_not_starve_at_any_concurrency,
    a_queue_of_low_weight_does_not_starve_at_a_concurrency_of_one,
    a_lottery_lets_no_queue_starve_at_a_concurrency_of_one,
    strict_works_the_heaviest_queue_off_first,
    an_engines_own_mode_holds_over_the_stores,
    setting_a_queue_answers_what_holds_and_refuses_what_makes_no_sense,
    engines_together_run_no_more_tasks_of_a_queue_than_its_concurrency,
    a_limit_raised_while_running_lets_more_run_at_once,
    a_full_queue_leaves_its_slots_to_others,
    a_drain_waits_for_room_in_a_queue_that_others_have_filled,
    what_is_buffered_goes_back_when_weights_change,
    what_is_buffered_goes_back_when_a_concurrency_is_set,
    what_is_buffered_goes_back_when_the_mode_changes,
    what_is_buffered_goes_back_in_a_pause,
}

fn name(queue: &str) -> Name {
    Name::new(queue).unwrap()
}

fn set(queue: &str) -> SetQueue {
    SetQueue::new(name(queue))
}

fn in_queue(queue: &str) -> NewTask {
    NewTask { queue: name(queue), ..task("any") }
}

async fn submit(engine: &Engine, queue: &str, tasks: usize) {
    engine.submit_all(vec![in_queue(queue); tasks]).await.unwrap();
}

/// Opens an engine whose handlers record the queue of each task that starts.
async fn noting(builder: EngineBuilder) -> (Engine, Arc<Mutex<String>>) {
    let engine = builder.open().await.unwrap();
    let started = Arc::new(Mutex::new(String::new()));
    let noted = Arc::clone(&started);
    engine.handle("any", move |context| {
        noted.lock().unwrap().push_str(context.queue());
        async { Ok::<(), Failure>(()) }
    });
    (engine, started)
}

/// Returns the order in which tasks of two queues start. The queues have weights 4 and 1 and 200
/// tasks each; the tasks of the light queue are submitted last.
async fn order(store: &TestStore, mode: QueueMode, concurrency: usize) -> String {
    let (engine, started) = noting(store.builder().concurrency(concurrency)).await;
    engine.set_queue_mode(mode).await.unwrap();
    engine.set_queue(set("h").weight(4)).await.unwrap();
    submit(&engine, "h", 200).await;
    submit(&engine, "l", 200).await;
    engine.drain().await.unwrap();
    started.lock().unwrap().clone()
}

/// Beats: starved-queues
///
/// Shows: Q2, Q3
async fn a_queue_of_low_weight_does_not_starve_at_a_concurrency_of_one(store: TestStore) {
    let started = order(&store, QueueMode::Interleaved, 1).await;
    for window in 0..200 {
        let turns = &started[window..window + 5];
        assert_eq!(turns.matches('l').count(), 1, "turns {turns} from {window} on");
    }
}

/// Shows: Q2
async fn a_queue_of_low_weight_does_not_starve_at_any_concurrency(store: TestStore) {
    for concurrency in [2, 3, 7, 16] {
        let store = store.fresh().await;
        let started = order(&store, QueueMode::Interleaved, concurrency).await;
        assert!(started[..200].matches('l').count() >= 40 - concurrency, "{started}");
    }
}

/// Shows: Q2
async fn a_lottery_lets_no_queue_starve_at_a_concurrency_of_one(store: TestStore) {
    let started = order(&store, QueueMode::Lenient, 1).await;
    let light = started[..200].matches('l').count();
    // Forty are expected; chance alone leaves this range once in a million runs.
    assert!((10..80).contains(&light), "{light} of 200");
}

/// Shows: Q2
async fn strict_works_the_heaviest_queue_off_first(store: TestStore) {
    let started = order(&store, QueueMode::Strict, 1).await;
    assert_eq!(started, format!("{}{}", "h".repeat(200), "l".repeat(200)));
}

/// Shows: Q2
async fn an_engines_own_mode_holds_over_the_stores(store: TestStore) {
    let (engine, started) = noting(store.builder().concurrency(1).queue_mode(QueueMode::Interleaved)).await;
    submit(&engine, "a", 4).await;
    submit(&engine, "b", 4).await;
    engine.set_queue_mode(QueueMode::Strict).await.unwrap();
    engine.drain().await.unwrap();
    assert_eq!(*started.lock().unwrap(), "abababab");
}

/// Shows: Q4
async fn setting_a_queue_answers_what_holds_and_refuses_what_makes_no_sense(store: TestStore) {
    let engine = store.engine().await;
    let settings = engine.set_queue(set("mail").weight(3).concurrency(2)).await.unwrap();
    assert_eq!(settings, QueueSettings { weight: 3, concurrency: Some(2), ..QueueSettings::default() });
    assert!(engine.set_queue(set("mail").weight(0)).await.unwrap_err().is_invalid());
}

/// Opens an engine whose handlers count how many of them run at once.
async fn counting(store: &TestStore, most: &Arc<AtomicUsize>, now: &Arc<AtomicUsize>) -> Engine {
    let engine = store.engine().await;
    let (most, now) = (Arc::clone(most), Arc::clone(now));
    engine.handle("any", move |_| {
        let (most, now) = (Arc::clone(&most), Arc::clone(&now));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // It yields twice because an engine polls a new handler twice in a row.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<(), Failure>(())
        }
    });
    engine
}

/// Shows: Q4
async fn engines_together_run_no_more_tasks_of_a_queue_than_its_concurrency(store: TestStore) {
    let (most, now) = Default::default();
    let engines = [counting(&store, &most, &now).await, counting(&store, &most, &now).await];
    engines[0].set_queue(set("a").concurrency(3)).await.unwrap();
    submit(&engines[0], "a", 100).await;
    let (one, other) = tokio::join!(engines[0].drain(), engines[1].drain());
    assert_eq!(one.unwrap().completed + other.unwrap().completed, 100);
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

/// Shows: Q4
async fn a_limit_raised_while_running_lets_more_run_at_once(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    engine.handle("any", gate.handler());
    engine.set_queue(set("a").concurrency(1)).await.unwrap();
    submit(&engine, "a", 3).await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.set_queue(set("a").concurrency(3)).await.unwrap();
    gate.entered(2).await;
    gate.open(3);
    stop(&engine, run).await;
}

/// Shows: Q4
async fn a_full_queue_leaves_its_slots_to_others(store: TestStore) {
    let (engine, gate) = (store.builder().concurrency(2).open().await.unwrap(), Gate::new());
    engine.handle("any", gate.handler());
    engine.set_queue(set("a").concurrency(1).weight(9)).await.unwrap();
    submit(&engine, "a", 5).await;
    submit(&engine, "b", 1).await;
    let run = start(&engine);
    gate.entered(2).await;
    let running: Vec<String> = engine.snapshot().running.iter().map(|task| task.queue.to_string()).collect();
    assert_eq!(running, ["a", "b"]);
    gate.open(6);
    stop(&engine, run).await;
}

/// Shows: Q4
async fn a_drain_waits_for_room_in_a_queue_that_others_have_filled(store: TestStore) {
    let (one, other, gate) = (store.engine().await, store.engine().await, Gate::new());
    one.handle("held", gate.handler());
    other.handle("any", |_| async { Ok::<(), Failure>(()) });
    one.set_queue(set("a").concurrency(1)).await.unwrap();
    one.submit_task(NewTask { queue: name("a"), ..task("held") }).await.unwrap();
    submit(&other, "a", 1).await;
    let run = start(&one);
    gate.entered(1).await;
    let drain = start_drain(&other);
    store.settled().await;
    assert!(!drain.is_finished(), "what waits for room was left");
    gate.open(1);
    assert_eq!(drain.await.unwrap().completed, 1);
    stop(&one, run).await;
}

/// An engine with one slot, in which the gate holds a task of the queue `a`. Tasks of `a` and `b`
/// are in its buffer.
struct Held {
    engine: Engine,
    run: JoinHandle<()>,
    gate: Gate,
}

const QUICK: u8 = 0;
const HELD: u8 = 1;

async fn hold(store: &TestStore, mode: QueueMode) -> Held {
    let (engine, gate) = (store.builder().concurrency(1).open().await.unwrap(), Gate::new());
    let held = gate.clone();
    engine.handle("any", move |context| {
        let gate = held.clone();
        async move {
            if context.payload()[0] == HELD {
                gate.pass().await;
            }
            Ok::<(), Failure>(())
        }
    });
    engine.set_queue_mode(mode).await.unwrap();
    let tasks = |payload: u8| ["a", "b"].map(|queue| NewTask { payload: vec![payload].into(), ..in_queue(queue) });
    let quick = (0..20).flat_map(|_| tasks(QUICK));
    engine.submit_all(quick.chain((0..20).flat_map(|_| tasks(HELD))).collect()).await.unwrap();
    let run = start(&engine);
    gate.entered(1).await;
    // The claim that fills the buffer may still be under way.
    store.settled().await;
    assert!(engine.snapshot().buffered > 1, "too little was buffered to tell");
    Held { engine, run, gate }
}

/// Returns the number of claimed tasks according to the store.
async fn claimed(store: &TestStore) -> u64 {
    store.queues().await.unwrap().iter().map(|queue| queue.running).sum()
}

/// Returns the number of tasks that were released so far.
async fn given_back(store: &TestStore) -> usize {
    let events = store.events(EventCursor::START, 1000).await.unwrap().events;
    events.iter().filter(|event| event.change == Change::Released).count()
}

/// Waits until all buffered tasks have been released, lets every handler through, and checks that
/// all tasks are done.
async fn goes_back(store: &TestStore, held: Held, buffered: usize) {
    while given_back(store).await < buffered {
        tokio::task::yield_now().await;
    }
    held.engine.resume(Scope::All).await.unwrap();
    held.gate.open(40);
    for id in 1..=80 {
        assert_eq!(held.engine.wait(TaskId(id)).await.unwrap().state, TaskState::Completed);
    }
    stop(&held.engine, held.run).await;
}

/// Shows: Q3, Q4
async fn what_is_buffered_goes_back_when_weights_change(store: TestStore) {
    let held = hold(&store, QueueMode::Interleaved).await;
    let buffered = held.engine.snapshot().buffered;
    held.engine.set_queue(set("a").weight(2)).await.unwrap();
    goes_back(&store, held, buffered).await;
}

/// Shows: Q3, Q4
async fn what_is_buffered_goes_back_when_a_concurrency_is_set(store: TestStore) {
    let held = hold(&store, QueueMode::Strict).await;
    let buffered = held.engine.snapshot().buffered;
    held.engine.set_queue(set("a").concurrency(1)).await.unwrap();
    goes_back(&store, held, buffered).await;
}

/// Shows: Q3, Q4
async fn what_is_buffered_goes_back_when_the_mode_changes(store: TestStore) {
    let held = hold(&store, QueueMode::Strict).await;
    let buffered = held.engine.snapshot().buffered;
    held.engine.set_queue_mode(QueueMode::Interleaved).await.unwrap();
    goes_back(&store, held, buffered).await;
}

/// Shows: Q3, T14
async fn what_is_buffered_goes_back_in_a_pause(store: TestStore) {
    let held = hold(&store, QueueMode::Strict).await;
    let buffered = held.engine.snapshot().buffered;
    held.engine.pause(Scope::All).await.unwrap();
    goes_back(&store, held, buffered).await;
}

async fn completed(store: &TestStore) -> u64 {
    store.queues().await.unwrap().iter().map(|queue| queue.ended.completed).sum()
}

/// Beats: lost-buffer
///
/// Shows: Q3, T21
async fn no_buffered_task_is_lost_at_a_stop(store: TestStore) {
    for mode in QueueMode::ALL {
        let store = store.fresh().await;
        let held = hold(&store, mode).await;
        held.engine.stop();
        while claimed(&store).await > 1 {
            tokio::task::yield_now().await;
        }
        held.gate.open(1);
        held.run.await.unwrap();
        let before = completed(&store).await;
        let (engine, started) = noting(store.builder()).await;
        engine.drain().await.unwrap();
        assert_eq!(before + started.lock().unwrap().len() as u64, 80, "{mode}: none is lost, and none runs twice");
        assert_eq!(completed(&store).await, 80);
    }
}
