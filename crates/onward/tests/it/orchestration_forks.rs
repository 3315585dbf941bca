//! Orchestrations that begin in the midst of another's history, on every store.

use std::sync::Arc;

use onward::orchestration::OrchestrationContext;
use onward::{Engine, Failure, NewTask, TaskFilter, TaskId, TaskState};
use onward_testkit::{Fault, FaultyStore};

use crate::fixture::{World, error, state, worlds};
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

/// Code that has an activity under way while it awaits an event.
async fn slow_and_event(_: Work, context: OrchestrationContext) -> Result<String, Failure> {
    let slow = context.activity_task::<u32>(NewTask::new("slow")?).start();
    let sent = context.event::<u32>("add")?.await?;
    Ok((slow.await? + sent).to_string())
}

async fn children(world: &World, task: TaskId) -> Vec<TaskId> {
    let filter = TaskFilter { parent: Some(task), ..TaskFilter::default() };
    let page = world.store.tasks(filter, onward::Page::default()).await.unwrap();
    page.tasks.iter().map(|task| task.id).collect()
}

/// Shows: D8
#[tokio::test]
async fn a_fork_of_a_fork_submits_again_what_was_under_way() {
    for world in worlds().await {
        let first = engine(&world, slow_and_event).await;
        let task = start(&first).await;
        first.run_until_idle().await.unwrap();
        let child = fork(&first, task).await;
        first.run_until_idle().await.unwrap();
        let grandchild = fork(&first, child).await;
        first.run_until_idle().await.unwrap();
        assert_eq!(children(&world, grandchild).await.len(), 1);
        let second = engine(&world, slow_and_event).await;
        second.handle("slow", |_| async { Ok::<_, Failure>("6") });
        second.signal(grandchild, "add", &1).await.unwrap();
        assert_eq!(finish(&second, grandchild).await.unwrap(), "7");
    }
}
