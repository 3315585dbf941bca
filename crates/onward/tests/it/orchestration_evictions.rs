//! The memory of orchestrations that end while they are parked in an engine.

use std::sync::Arc;
use std::time::Duration;

use onward::orchestration::OrchestrationContext;
use onward::{Engine, TaskFilter, TaskId};
use onward_store::Write;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::fixture::{TestStore, start as start_run, stop};
use crate::orchestrations::{engine, start};

on_every_store! {
    what_another_engine_ends_is_freed,
    what_a_bulk_action_ends_is_freed,
    what_is_deleted_is_freed,
    what_another_process_ends_is_freed,
    what_goes_on_stays_in_memory_while_others_end,
}

/// The longest real time until memory is freed.
const SOON: Duration = Duration::from_secs(60);

/// A stand-in for the memory of an orchestration's code.
struct Memory(Arc<Semaphore>);

impl Drop for Memory {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

/// A running engine, with orchestrations that wait for an event.
struct Parked {
    engine: Engine,
    run: JoinHandle<()>,
    tasks: Vec<TaskId>,
    freed: Arc<Semaphore>,
}

impl Parked {
    async fn new(store: &TestStore, orchestrations: usize) -> Self {
        let (freed, begun) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (held, began) = (Arc::clone(&freed), Arc::clone(&begun));
        let engine = engine(store, move |_, context: OrchestrationContext| {
            let (memory, began) = (Memory(Arc::clone(&held)), Arc::clone(&began));
            async move {
                began.add_permits(1);
                let _memory = memory;
                context.event::<String>("go")?.await
            }
        })
        .await;
        let mut tasks = Vec::new();
        for _ in 0..orchestrations {
            tasks.push(start(&engine).await);
        }
        let run = start_run(&engine);
        begun.acquire_many(u32::try_from(orchestrations).unwrap()).await.unwrap().forget();
        store.settled().await;
        Self { engine, run, tasks, freed }
    }

    /// Waits until the memory of `orchestrations` orchestrations is freed.
    async fn freed(&self, orchestrations: u32) {
        let freed = tokio::time::timeout(SOON, self.freed.acquire_many(orchestrations)).await;
        let free = self.freed.available_permits();
        freed.unwrap_or_else(|_| panic!("the memory of {free} of {orchestrations} is free")).unwrap().forget();
    }

    async fn stop(self) {
        stop(&self.engine, self.run).await;
    }
}

/// Shows: D11
async fn what_another_engine_ends_is_freed(store: TestStore) {
    let parked = Parked::new(&store, 3).await;
    let other = store.engine().await;
    for task in &parked.tasks {
        other.terminate(*task, "enough").await.unwrap();
    }
    parked.freed(3).await;
    parked.stop().await;
}

/// Shows: D11
async fn what_a_bulk_action_ends_is_freed(store: TestStore) {
    let parked = Parked::new(&store, 3).await;
    parked.engine.kill_all(TaskFilter::default()).await.unwrap();
    parked.freed(3).await;
    parked.stop().await;
}

/// Shows: D11
async fn what_is_deleted_is_freed(store: TestStore) {
    let parked = Parked::new(&store, 3).await;
    parked.engine.delete(parked.tasks[0]).await.unwrap();
    parked.freed(1).await;
    parked.engine.delete_all(TaskFilter::default()).await.unwrap();
    parked.freed(2).await;
    parked.stop().await;
}

/// Shows: D11
async fn what_another_process_ends_is_freed(store: TestStore) {
    // More orchestrations than the engine looks up at once.
    let parked = Parked::new(&store, 300).await;
    let other = store.opened_again().await;
    let (deleted, terminated) = parked.tasks.split_at(10);
    let terminate = |task: &TaskId| Write::Terminate { task: *task, reason: "enough".to_owned() };
    other.apply(terminated.iter().map(terminate).collect()).await.unwrap();
    other.apply(deleted.iter().map(|task| Write::Delete { task: *task }).collect()).await.unwrap();
    parked.freed(300).await;
    parked.stop().await;
}

/// Shows: D11
async fn what_goes_on_stays_in_memory_while_others_end(store: TestStore) {
    let parked = Parked::new(&store, 4).await;
    let other = store.opened_again().await;
    other.apply(vec![Write::Terminate { task: parked.tasks[2], reason: "enough".to_owned() }]).await.unwrap();
    parked.freed(1).await;
    parked.engine.terminate(parked.tasks[1], "enough").await.unwrap();
    parked.freed(1).await;
    store.settled().await;
    assert_eq!(parked.freed.available_permits(), 0, "the others were put away too");
    parked.stop().await;
}
