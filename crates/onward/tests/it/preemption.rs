//! Running work that yields to urgent work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onward::handlers::Interruption;
use onward::limits::Preemption;
use onward::observe::EventCursor;
use onward::queues::SetQueue;
use onward::{Context, Engine, Failure, NewTask, Priority, TaskId, TaskState, bounds};

use crate::fixture::{Gate, TestStore, record, start, state, stop, task};

on_every_store! {
    a_running_task_gives_way_to_an_urgent_one_and_runs_again_later,
    a_handler_is_notified_of_its_preemption,
    a_preempted_task_is_not_claimed_before_its_handler_has_ended,
    no_more_tasks_give_way_than_urgent_ones_wait,
    nothing_gives_way_to_a_task_that_is_not_urgent_enough,
    nothing_gives_way_to_an_urgent_task_that_a_limit_holds_back,
    a_task_gives_way_a_few_times_and_then_runs_to_its_end,
    what_gives_way_cleans_up_before_it_is_given_back,
}

const POLICY: Preemption = Preemption { from: Priority(200), levels: 64 };

/// A step of the clock: less than the grace of a handler, and enough for the engine to check again.
const STEP: Duration = bounds::PREEMPTION_INTERVAL;

async fn engine(store: &TestStore, slots: usize) -> Engine {
    store.builder().concurrency(slots).preemption(POLICY).open().await.unwrap()
}

async fn submit(engine: &Engine, kind: &str, priority: u8) -> TaskId {
    engine.submit_task(NewTask { priority: Priority(priority), ..task(kind) }).await.unwrap().id()
}

/// Moves the clock until `handlers` handlers have entered a gate.
async fn entered(store: &TestStore, gate: &Gate, handlers: u32) {
    let gate = gate.clone();
    store.advance_until(STEP, tokio::spawn(async move { gate.entered(handlers).await })).await;
}

/// Moves the clock until a task has ended.
async fn ended(store: &TestStore, engine: &Engine, task: TaskId) -> TaskState {
    let engine = engine.clone();
    let ended = tokio::spawn(async move { engine.wait(task).await.unwrap().state });
    store.advance_until(STEP, ended).await
}

/// Lets the engine check the submitted tasks several times.
async fn let_it_look(store: &TestStore) {
    for _ in 0..200 {
        store.advance(STEP).await;
    }
}

/// Shows: T4
async fn a_running_task_gives_way_to_an_urgent_one_and_runs_again_later(store: TestStore) {
    let engine = engine(&store, 1).await;
    let (low, urgent) = (Gate::new(), Gate::new());
    engine.handle("low", low.stoppable()).handle("urgent", urgent.handler());
    let first = submit(&engine, "low", 128).await;
    let run = start(&engine);
    low.entered(1).await;
    let second = submit(&engine, "urgent", 255).await;
    entered(&store, &urgent, 1).await;
    // The engine may over-fetch the task again, and releases it when it does not start.
    while state(&store, first).await != TaskState::Waiting {
        store.advance(STEP).await;
    }
    urgent.open(1);
    assert_eq!(ended(&store, &engine, second).await, TaskState::Completed);
    low.open(1);
    assert_eq!(ended(&store, &engine, first).await, TaskState::Completed);
    let record = record(&store, first).await;
    assert_eq!((record.attempts, record.errors.len()), (1, 0), "it used up an attempt");
    stop(&engine, run).await;
}

/// Shows: T4
async fn a_handler_is_notified_of_its_preemption(store: TestStore) {
    let engine = engine(&store, 1).await;
    let (low, urgent) = (Gate::new(), Gate::new());
    let (entered_low, reported) = (low.clone(), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&reported);
    engine.handle("urgent", urgent.handler()).handle("low", move |context: Context| {
        let (gate, seen) = (entered_low.clone(), Arc::clone(&seen));
        async move {
            gate.open(1);
            gate.pass().await;
            context.cancelled().cancelled().await;
            let is_preempted = context.interruption() == Some(Interruption::Preempted);
            seen.fetch_add(usize::from(is_preempted), Ordering::Relaxed);
            Ok::<(), Failure>(())
        }
    });
    let first = submit(&engine, "low", 0).await;
    let run = start(&engine);
    low.entered(1).await;
    submit(&engine, "urgent", 255).await;
    // Its result counts although it was asked to stop.
    assert_eq!(ended(&store, &engine, first).await, TaskState::Completed);
    assert_eq!(reported.load(Ordering::Relaxed), 1);
    urgent.open(1);
    stop(&engine, run).await;
}

/// Shows: T4
/// Beats: double-run-of-preempted
async fn a_preempted_task_is_not_claimed_before_its_handler_has_ended(store: TestStore) {
    let engine = engine(&store, 1).await;
    let (deaf, urgent) = (Gate::new(), Gate::new());
    engine.handle("deaf", deaf.handler()).handle("urgent", urgent.handler());
    let first = submit(&engine, "deaf", 128).await;
    let run = start(&engine);
    deaf.entered(1).await;
    submit(&engine, "urgent", 255).await;
    let asked = || engine.snapshot().running.iter().any(|running| running.id == first && running.is_stopping);
    while !asked() {
        store.advance(Duration::from_millis(1)).await;
    }
    // The handler still runs, so no engine may start the task a second time.
    let other = store.engine().await;
    other.handle("deaf", deaf.handler());
    for _ in 0..20 {
        other.run_until_idle().await.unwrap();
        tokio::task::yield_now().await;
    }
    assert!(!deaf.has_entered());
    assert_eq!(state(&store, first).await, TaskState::Running);
    // The handler is aborted after its grace. Then other engines may claim the task.
    entered(&store, &urgent, 1).await;
    urgent.open(1);
    entered(&store, &deaf, 1).await;
    deaf.open(1);
    assert_eq!(ended(&store, &engine, first).await, TaskState::Completed);
    stop(&engine, run).await;
    assert_eq!(starts(&engine, first).await, 2);
}

async fn starts(engine: &Engine, task: TaskId) -> usize {
    let mut events = engine.events(EventCursor::START);
    let mut starts = 0;
    while let Some(event) = events.try_next().await.unwrap() {
        starts += usize::from(event.task == task && matches!(event.change, onward::observe::Change::Started { .. }));
    }
    starts
}

/// Shows: T4
async fn no_more_tasks_give_way_than_urgent_ones_wait(store: TestStore) {
    let engine = engine(&store, 3).await;
    let (low, urgent) = (Gate::new(), Gate::new());
    engine.handle("low", low.stoppable()).handle("urgent", urgent.handler());
    let mut tasks = Vec::new();
    for priority in [100, 90, 80] {
        tasks.push(submit(&engine, "low", priority).await);
    }
    let run = start(&engine);
    low.entered(3).await;
    submit(&engine, "urgent", 255).await;
    submit(&engine, "urgent", 255).await;
    entered(&store, &urgent, 2).await;
    let_it_look(&store).await;
    let mut states = Vec::new();
    for task in &tasks {
        states.push(state(&store, *task).await);
    }
    assert_eq!(states, [TaskState::Running, TaskState::Waiting, TaskState::Waiting]);
    urgent.open(2);
    low.open(3);
    for task in tasks {
        ended(&store, &engine, task).await;
    }
    stop(&engine, run).await;
}

/// Shows: T4
async fn nothing_gives_way_to_a_task_that_is_not_urgent_enough(store: TestStore) {
    let engine = engine(&store, 1).await;
    let (low, urgent) = (Gate::new(), Gate::new());
    engine.handle("low", low.stoppable()).handle("urgent", urgent.handler());
    let first = submit(&engine, "low", 0).await;
    let run = start(&engine);
    low.entered(1).await;
    submit(&engine, "urgent", 199).await;
    let_it_look(&store).await;
    assert_eq!(state(&store, first).await, TaskState::Running);
    low.open(1);
    entered(&store, &urgent, 1).await;
    urgent.open(1);
    stop(&engine, run).await;
}

/// Shows: T4, T9
async fn nothing_gives_way_to_an_urgent_task_that_a_limit_holds_back(store: TestStore) {
    let engine = engine(&store, 2).await;
    let (low, urgent) = (Gate::new(), Gate::new());
    engine.handle("low", low.stoppable()).handle("urgent", urgent.handler());
    let queue = onward::Name::new("one").unwrap();
    engine.set_queue(SetQueue::new(queue.clone()).concurrency(1)).await.unwrap();
    let first = submit(&engine, "low", 0).await;
    let in_queue = || NewTask { priority: Priority::URGENT, queue: queue.clone(), ..task("urgent") };
    engine.submit_task(in_queue()).await.unwrap();
    let run = start(&engine);
    low.entered(1).await;
    urgent.entered(1).await;
    engine.submit_task(in_queue()).await.unwrap();
    let_it_look(&store).await;
    assert_eq!(state(&store, first).await, TaskState::Running);
    assert!(!urgent.has_entered());
    low.open(1);
    urgent.open(2);
    stop(&engine, run).await;
}

/// Shows: T4
async fn a_task_gives_way_a_few_times_and_then_runs_to_its_end(store: TestStore) {
    let engine = engine(&store, 1).await;
    let (low, urgent) = (Gate::new(), Gate::new());
    engine.handle("low", low.stoppable()).handle("urgent", urgent.handler());
    let first = submit(&engine, "low", 0).await;
    let run = start(&engine);
    for _ in 0..bounds::PREEMPTIONS {
        entered(&store, &low, 1).await;
        submit(&engine, "urgent", 255).await;
        entered(&store, &urgent, 1).await;
        urgent.open(1);
    }
    entered(&store, &low, 1).await;
    submit(&engine, "urgent", 255).await;
    let_it_look(&store).await;
    assert_eq!(state(&store, first).await, TaskState::Running);
    low.open(1);
    assert_eq!(ended(&store, &engine, first).await, TaskState::Completed);
    urgent.open(1);
    stop(&engine, run).await;
}

/// Shows: T4, T13
async fn what_gives_way_cleans_up_before_it_is_given_back(store: TestStore) {
    let engine = engine(&store, 1).await;
    let (low, urgent, cleaned) = (Gate::new(), Gate::new(), Gate::new());
    let (started, cleans) = (low.clone(), cleaned.clone());
    engine.handle("urgent", urgent.handler()).handle("low", move |context: Context| {
        let (gate, cleans) = (started.clone(), cleans.clone());
        async move {
            context.clean_up_with(async move { cleans.pass().await });
            gate.pass().await;
            Ok::<(), Failure>(())
        }
    });
    let first = submit(&engine, "low", 0).await;
    let run = start(&engine);
    low.entered(1).await;
    submit(&engine, "urgent", 255).await;
    entered(&store, &cleaned, 1).await;
    assert_eq!(state(&store, first).await, TaskState::Running);
    assert!(!urgent.has_entered());
    cleaned.open(1);
    entered(&store, &urgent, 1).await;
    urgent.open(1);
    low.open(2);
    assert_eq!(ended(&store, &engine, first).await, TaskState::Completed);
    stop(&engine, run).await;
}

/// Shows: T4
#[tokio::test]
async fn a_preemption_of_no_levels_is_refused() {
    let builder = Engine::builder().memory().preemption(Preemption { levels: 0, ..POLICY });
    assert!(builder.open().await.unwrap_err().is_invalid());
}
