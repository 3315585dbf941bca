//! Affinity keys of tasks, and the engines that they prefer: two engines on one store.

use std::sync::{Arc, Mutex};

use onward::store::Clock;
use onward::{Engine, Failure, NewTask, Task, TaskId};
use onward_store::{Name, bounds};
use serde::{Deserialize, Serialize};

use crate::fixture::{Gate, SECOND, TestStore, record, start, stop, submit, task};

on_every_store! {
    an_affinity_key_stays_with_the_engine_that_began_it,
    what_an_engine_is_too_busy_for_goes_to_another_when_the_wait_is_over,
    the_affinity_keys_of_a_stopping_engine_are_free_at_once,
    a_typed_task_names_its_affinity_key,
    an_invalid_affinity_key_is_refused,
}

/// The name of the engine that ran each task, in order.
type Ran = Arc<Mutex<Vec<&'static str>>>;

fn of(affinity_key: &str) -> NewTask {
    NewTask { affinity: Some(Name::new(affinity_key).unwrap()), ..task("k") }
}

async fn submit_of(engine: &Engine, affinity_key: &str) -> TaskId {
    engine.submit_task(of(affinity_key)).await.unwrap().id()
}

/// Opens an engine that records its name for each task that it runs.
async fn engine(store: &TestStore, name: &'static str, ran: &Ran) -> Engine {
    let engine = store.builder().open().await.unwrap();
    let ran = Arc::clone(ran);
    engine.handle("k", move |_| {
        ran.lock().unwrap().push(name);
        async { Ok::<(), Failure>(()) }
    });
    engine
}

/// Shows: Q12
async fn an_affinity_key_stays_with_the_engine_that_began_it(store: TestStore) {
    let ran = Ran::default();
    let engines = [engine(&store, "one", &ran).await, engine(&store, "other", &ran).await];
    let runs = engines.each_ref().map(start);
    for _ in 0..20 {
        let task = submit_of(&engines[0], "s").await;
        engines[0].wait(task).await.unwrap();
    }
    let ran = ran.lock().unwrap().clone();
    assert!(ran.len() == 20 && ran.iter().all(|name| *name == ran[0]), "{ran:?}");
    for (engine, run) in engines.iter().zip(runs) {
        stop(engine, run).await;
    }
}

/// Shows: Q12
async fn what_an_engine_is_too_busy_for_goes_to_another_when_the_wait_is_over(store: TestStore) {
    let ran = Ran::default();
    let gate = Gate::new();
    let busy = store.builder().concurrency(1).prefetch(0).open().await.unwrap();
    busy.handle("k", gate.handler());
    let run_of_busy = start(&busy);
    submit_of(&busy, "s").await;
    gate.entered(1).await;
    let other = engine(&store, "other", &ran).await;
    let run = start(&other);
    let began = store.clock.steady();
    let reserved = submit_of(&other, "s").await;
    let waits = other.clone();
    let waits = tokio::spawn(async move { waits.wait(reserved).await.unwrap() });
    store.advance_until(SECOND / 10, waits).await;
    assert!(store.clock.steady() - began >= bounds::AFFINITY_WAIT);
    assert_eq!(*ran.lock().unwrap(), ["other"]);
    gate.open(1);
    stop(&other, run).await;
    stop(&busy, run_of_busy).await;
}

/// Shows: Q12
async fn the_affinity_keys_of_a_stopping_engine_are_free_at_once(store: TestStore) {
    let (ran, gate) = (Ran::default(), Gate::new());
    let stopping = engine(&store, "stopping", &ran).await;
    stopping.handle("held", gate.handler());
    let run_of_stopping = start(&stopping);
    let first = submit_of(&stopping, "s").await;
    stopping.wait(first).await.unwrap();
    submit(&stopping, "held").await;
    gate.entered(1).await;
    let other = engine(&store, "other", &ran).await;
    let run = start(&other);
    stopping.stop();
    let second = submit_of(&other, "s").await;
    other.wait(second).await.unwrap();
    assert_eq!(*ran.lock().unwrap(), ["stopping", "other"], "and no time has passed");
    gate.open(1);
    run_of_stopping.await.unwrap();
    stop(&other, run).await;
}

#[derive(Serialize, Deserialize)]
struct Train {
    customer: u64,
}

impl Task for Train {
    const KIND: &'static str = "train";
    type Output = ();

    fn affinity(&self) -> Option<String> {
        Some(format!("customer-{}", self.customer))
    }
}

/// Shows: Q12, T20
async fn a_typed_task_names_its_affinity_key(store: TestStore) {
    let engine = store.engine().await;
    let own = engine.submit(Train { customer: 7 }).await.unwrap().submitted().id();
    let described = engine.submit_with(Train { customer: 7 }).affinity("tonight").await.unwrap().submitted().id();
    let affinity_key = [record(&store, own).await.affinity, record(&store, described).await.affinity];
    assert_eq!(affinity_key, ["customer-7", "tonight"].map(|name| Some(Name::new(name).unwrap())));
}

async fn an_invalid_affinity_key_is_refused(store: TestStore) {
    let engine = store.engine().await;
    let error = engine.submit_with(Train { customer: 7 }).affinity("").await.unwrap_err();
    assert!(error.to_string().contains("name"), "{error}");
}
