//! Orchestrations that begin in the midst of another's history, on every store.

use std::sync::Arc;

use onward::orchestration::OrchestrationContext;
use onward::{Engine, TaskId, TaskState};
use onward_testkit::{Fault, FaultyStore};

use crate::fixture::{error, state, worlds};
use crate::orchestrations::{Double, Work, engine, finish, start};

/// Forks an orchestration where its history ends.
async fn fork(engine: &Engine, task: TaskId) -> TaskId {
    let length = engine.orchestration_history(task).await.unwrap().len() as u64;
    engine.fork(task, length).await.unwrap()
}

/// Shows: D8
#[tokio::test]
async fn a_fork_waits_while_the_history_of_its_origin_cannot_be_read() {
    for world in worlds().await {
        let code = |_: Work, context: OrchestrationContext| async move { context.event::<String>("go")?.await };
        let first = engine(&world, code).await;
        let task = start(&first).await;
        first.run_until_idle().await.unwrap();
        let fork = fork(&first, task).await;
        let faulty = Arc::new(FaultyStore::new(Arc::clone(&world.store)));
        faulty.fail_reads_from(1, Fault::Busy);
        let second = world.builder().store(faulty.clone()).open().await.unwrap();
        second.orchestrate(code);
        second.run_until_idle().await.unwrap();
        assert_eq!(state(&world, fork).await, TaskState::Scheduled, "{}", error(&world, fork).await);
        faulty.heal();
        world.clock.advance(onward::limits::STORE_RETRY_LONGEST);
        second.signal(fork, "go", &"on").await.unwrap();
        assert_eq!(finish(&second, fork).await.unwrap(), "on");
    }
}

/// Shows: D8
#[tokio::test]
async fn a_fork_that_continues_as_new_goes_on_with_a_history_of_its_own() {
    for world in worlds().await {
        let engine = engine(&world, |work: Work, context| async move {
            if work.0 == 8 {
                return context.event::<String>("end")?.await;
            }
            context.activity(Double(1)).await?;
            context.event::<()>("go")?.await?;
            Err(context.continue_as_new(&Work(8)))
        })
        .await;
        let task = start(&engine).await;
        engine.run_until_idle().await.unwrap();
        let fork = fork(&engine, task).await;
        engine.signal(fork, "go", &()).await.unwrap();
        engine.run_until_idle().await.unwrap();
        engine.signal(fork, "end", &"over").await.unwrap();
        assert_eq!(finish(&engine, fork).await.unwrap(), "over");
    }
}
