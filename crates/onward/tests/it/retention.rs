//! Engines that forget what ended long ago.

use onward::{EngineBuilder, TaskId};

use crate::fixture::{HOUR, World, start, stop, submit, worlds};

/// Runs an engine in a world until one task is forgotten, while time goes on; answers which of those that ended are left.
async fn forgotten(world: &World, builder: EngineBuilder, tasks: &[TaskId], first: TaskId) -> Vec<TaskId> {
    let engine = builder.lease(24 * HOUR).open().await.unwrap();
    engine.handle("k", |_| async { Ok(()) });
    let run = start(&engine);
    let store = engine.store().clone();
    let is_gone = tokio::spawn(async move {
        while store.task(first).await.unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    });
    world.advance_until(HOUR / 60, is_gone).await;
    stop(&engine, run).await;
    let mut left = Vec::new();
    for task in tasks {
        left.extend(world.store.task(*task).await.unwrap().map(|record| record.id));
    }
    left
}

/// Shows: T17
#[tokio::test]
async fn an_engine_forgets_what_ended_longer_ago_than_it_was_told_and_nothing_else() {
    for world in worlds().await {
        let engine = world.engine().await;
        engine.handle("k", |_| async { Ok(()) });
        let old = submit(&engine, "k").await;
        engine.run_until_idle().await.unwrap();
        let live =
            engine.submit_task(onward::NewTask { when: onward::When::After(1000 * HOUR), ..crate::fixture::task("k") });
        let live = live.await.unwrap().id();
        let ended_at = onward::Clock::now(&*world.clock);
        let left = forgotten(&world, world.builder().keep_ended_for(2 * HOUR), &[old, live], old).await;
        assert_eq!(left, [live]);
        assert!(onward::Clock::now(&*world.clock) > ended_at.plus(2 * HOUR));
    }
}

/// Shows: T17
#[tokio::test]
async fn an_engine_keeps_as_many_ended_tasks_as_it_was_told_the_newest() {
    for world in worlds().await {
        let engine = world.engine().await;
        engine.handle("k", |_| async { Ok(()) });
        let mut tasks = Vec::new();
        for _ in 0..3 {
            tasks.push(submit(&engine, "k").await);
            engine.run_until_idle().await.unwrap();
        }
        let left = forgotten(&world, world.builder().keep_ended(2), &tasks, tasks[0]).await;
        assert_eq!(left, tasks[1..]);
    }
}
