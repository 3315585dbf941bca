//! Tasks that are over-fetched: claimed before a slot is free.

use onward_store::StoreReads;
use std::sync::{Arc, Mutex};

use onward::queues::{QueueMode, SetQueue};
use onward::{Engine, Failure, Name, NewTask, Priority, TaskState, bounds};
use tokio::task::JoinHandle;

use crate::fixture::{Gate, TestStore, start, stop, task};

on_every_store! {
    what_handlers_have_become_too_slow_for_is_given_back,
    an_urgent_arrival_goes_before_what_is_buffered,
    where_queues_take_turns_an_arrival_goes_before_what_another_queue_has_buffered,
    a_stop_gives_back_what_is_buffered,
    the_timeout_of_a_buffered_task_begins_when_its_handler_does,
    a_cancelled_task_that_is_buffered_never_starts,
}

/// An engine with one slot, which is taken by a task that the gate holds, and with a buffer that
/// was filled while tasks were quick. The first byte of each payload shows the order in which tasks
/// started.
struct Held {
    engine: Engine,
    run: JoinHandle<()>,
    gate: Gate,
    started: Arc<Mutex<Vec<u8>>>,
}

const QUICK: u8 = 0;
const HELD: u8 = 1;
const LATE: u8 = 9;

async fn hold(store: &TestStore) -> Held {
    let engine = store.builder().concurrency(1).open().await.unwrap();
    let (gate, started) = (Gate::new(), Arc::new(Mutex::new(Vec::new())));
    let (held, seen) = (gate.clone(), Arc::clone(&started));
    engine.handle("any", move |context| {
        let (gate, seen) = (held.clone(), Arc::clone(&seen));
        async move {
            let name = context.payload()[0];
            seen.lock().unwrap().push(name);
            if name == HELD {
                gate.pass().await;
            }
            Ok::<(), Failure>(())
        }
    });
    let mut tasks = vec![named(QUICK); 40];
    tasks.extend(vec![named(HELD); 40]);
    engine.submit_all(tasks).await.unwrap();
    let run = start(&engine);
    gate.entered(1).await;
    // The claim that fills the buffer may still be under way.
    store.settled().await;
    Held { engine, run, gate, started }
}

fn named(name: u8) -> NewTask {
    NewTask { payload: vec![name].into(), ..task("any") }
}

/// Shows: Q3
async fn what_handlers_have_become_too_slow_for_is_given_back(store: TestStore) {
    let held = hold(&store).await;
    assert!(held.engine.snapshot().buffered > 0, "nothing was buffered");
    while store.queues().await.unwrap()[0].running > 1 {
        store.advance(bounds::BUFFER_WAIT).await;
    }
    assert_eq!(held.engine.snapshot().buffered, 0);
    held.gate.open(40);
    stop(&held.engine, held.run).await;
}

/// Submits a late task, which is claimed before the held one ends. Returns the last three tasks
/// that had started by then.
async fn order_around(store: &TestStore, held: Held, late: NewTask) -> Vec<u8> {
    let id = held.engine.submit_task(late).await.unwrap().id();
    while store.task(id).await.unwrap().unwrap().session.is_none() {
        tokio::task::yield_now().await;
    }
    held.gate.open(1);
    held.gate.entered(1).await;
    let started = held.started.lock().unwrap().clone();
    held.gate.open(40);
    stop(&held.engine, held.run).await;
    started[started.len() - 3..].to_vec()
}

/// Shows: T4
async fn an_urgent_arrival_goes_before_what_is_buffered(store: TestStore) {
    let held = hold(&store).await;
    assert!(held.engine.snapshot().buffered > 0, "nothing was buffered");
    let urgent = NewTask { priority: Priority::URGENT, ..named(LATE) };
    assert_eq!(order_around(&store, held, urgent).await, [HELD, LATE, HELD]);
}

/// Shows: Q2, Q3
async fn where_queues_take_turns_an_arrival_goes_before_what_another_queue_has_buffered(store: TestStore) {
    let other = Name::new("other").unwrap();
    let engine = store.builder().open().await.unwrap();
    engine.set_queue_mode(QueueMode::Interleaved).await.unwrap();
    engine.set_queue(SetQueue::new(other.clone()).weight(5)).await.unwrap();
    let held = hold(&store).await;
    assert!(held.engine.snapshot().buffered > 0, "nothing was buffered");
    let arrival = NewTask { queue: other, ..named(LATE) };
    assert_eq!(order_around(&store, held, arrival).await, [HELD, LATE, HELD]);
}

/// Shows: Q3, T21
/// Beats: lost-buffer
async fn a_stop_gives_back_what_is_buffered(store: TestStore) {
    let held = hold(&store).await;
    assert!(held.engine.snapshot().buffered > 0, "nothing was buffered");
    held.engine.stop();
    while store.queues().await.unwrap()[0].running > 1 {
        tokio::task::yield_now().await;
    }
    held.gate.open(1);
    held.run.await.unwrap();
    let queue = store.queues().await.unwrap().remove(0);
    assert_eq!((queue.running, queue.waiting, queue.ended.completed), (0, 39, 41));
}

/// Shows: Q3, T6
async fn the_timeout_of_a_buffered_task_begins_when_its_handler_does(store: TestStore) {
    let (engine, gate) = (store.builder().concurrency(1).open().await.unwrap(), Gate::new());
    let held = gate.clone();
    engine.handle("any", move |context| {
        let gate = held.clone();
        async move {
            let cancelled = context.cancelled();
            match context.payload()[0] {
                QUICK => Ok(()),
                _ => tokio::select! {
                    () = gate.pass() => Ok(()),
                    () = cancelled.cancelled() => Err(Failure::retryable("stopped halfway")),
                },
            }
        }
    });
    let timeout = bounds::BUFFER_WAIT / 2;
    let mut tasks = vec![named(QUICK); 40];
    tasks.push(named(HELD));
    tasks.extend(vec![NewTask { timeout: Some(timeout), ..named(HELD) }; 4]);
    let last = engine.submit_all(tasks).await.unwrap()[44].id();
    let run = start(&engine);
    gate.entered(1).await;
    // The claim that fills the buffer may still be under way.
    store.settled().await;
    assert!(engine.snapshot().buffered > 0, "nothing was buffered");
    store.clock.advance(timeout + timeout / 2);
    gate.open(1);
    for _ in 0..4 {
        gate.entered(1).await;
        store.clock.advance(timeout / 2);
        gate.open(1);
    }
    assert_eq!(engine.wait(last).await.unwrap().state, TaskState::Completed);
    stop(&engine, run).await;
    let queue = store.queues().await.unwrap().remove(0);
    assert_eq!((queue.ended.completed, queue.ended.dead), (45, 0));
}

/// Shows: T13
async fn a_cancelled_task_that_is_buffered_never_starts(store: TestStore) {
    let held = hold(&store).await;
    let running = held.engine.snapshot().running[0].id;
    let buffered = onward::TaskId(running.0 + 1);
    held.engine.cancel(buffered).await.unwrap();
    let record = held.engine.wait(buffered).await.unwrap();
    assert_eq!(record.errors[0].message, "cancelled before it started");
    held.gate.open(40);
    stop(&held.engine, held.run).await;
}
