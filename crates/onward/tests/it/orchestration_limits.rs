//! Values that are too large or too many for orchestrations, on every store.

use std::time::Duration;

use onward::orchestration::OrchestrationContext;
use onward::task::Dependencies;
use onward::{EngineBuilder, NewTask, TaskId, TaskState};
use onward_store::StoreReads;

use crate::fixture::{TestStore, error, state};
use crate::orchestration_clients::Lines;
use crate::orchestrations::{Work, engine, finish, start};

on_every_store! {
    a_step_whose_answer_is_too_large_for_the_history_is_not_kept,
    a_turn_submits_as_many_tasks_as_it_may_and_no_more,
    a_task_that_no_turn_may_submit_is_an_error_in_the_code,
    a_history_at_half_of_its_limit_is_logged_once_with_the_remedy,
    a_loop_of_timers_that_are_due_ends_at_the_limit_of_the_history,
}

/// Shows: D9
async fn a_step_whose_answer_is_too_large_for_the_history_is_not_kept(store: TestStore) {
    let narrow = store.builder().history_bytes(1000).open().await.unwrap();
    narrow.orchestrate(|_: Work, context: OrchestrationContext| async move {
        context.step("large", || async { Ok("x".repeat(2000)) }).await
    });
    let task = start(&narrow).await;
    narrow.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Dead);
    let said = error(&store, task).await;
    assert!(said.contains("may have") && said.contains("1000"), "{said}");
    assert!(store.instance(task).await.unwrap().unwrap_or_default().bytes < 1000);
}

/// Shows: D4
async fn a_turn_submits_as_many_tasks_as_it_may_and_no_more(store: TestStore) {
    let most = onward_store::bounds::TURN_TASKS;
    let code = move |work: Work, context: OrchestrationContext| async move {
        for _ in 0..most + work.0 as usize {
            context.detach_task(NewTask::new("detached")?)?;
        }
        Ok("over".to_owned())
    };
    let engine = engine(&store, code).await;
    let fits = engine.submit(Work(0)).await.unwrap().id();
    assert_eq!(finish(&engine, fits).await.unwrap(), "over");
    let one_more = engine.submit(Work(1)).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, one_more).await, TaskState::Dead);
    let said = error(&store, one_more).await;
    assert!(said.contains("more than 10000 tasks"), "{said}");
}

/// Shows: D2
async fn a_task_that_no_turn_may_submit_is_an_error_in_the_code(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let dependent = NewTask { depends_on: Dependencies::on([TaskId(1)]), ..NewTask::new("charge")? };
        let stranger = NewTask { parent: Some(TaskId(999)), ..NewTask::new("charge")? };
        let said = [
            context.activity_task::<()>(dependent.clone()).await.unwrap_err().to_string(),
            context.detach_task(dependent).unwrap_err().to_string(),
            context.detach_task(stranger).unwrap_err().to_string(),
        ];
        Ok(said.join("\n"))
    })
    .await;
    let task = start(&engine).await;
    let said = finish(&engine, task).await.unwrap();
    assert_eq!(said.matches("with dependencies").count(), 2, "{said}");
    assert_eq!(said.matches("child of another").count(), 1, "{said}");
}

/// Returns the log of an engine while an orchestration takes ten steps of a hundred bytes, one
/// after the other.
async fn said_of_ten_steps(store: &TestStore, limited: impl FnOnce(EngineBuilder) -> EngineBuilder) -> String {
    let lines = Lines::default();
    let reported = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || reported.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let engine = limited(store.builder()).open().await.unwrap();
    engine.orchestrate(|_: Work, context: OrchestrationContext| async move {
        for _ in 0..10 {
            context.step("hundred", || async { Ok("x".repeat(100)) }).await?;
        }
        Ok(String::new())
    });
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap();
    lines.text()
}

/// Shows: D9
async fn a_history_at_half_of_its_limit_is_logged_once_with_the_remedy(store: TestStore) {
    for said in [
        said_of_ten_steps(&store, |builder| builder.history_events(16)).await,
        said_of_ten_steps(&store, |builder| builder.history_bytes(2000)).await,
    ] {
        assert_eq!(said.matches("grows long").count(), 1, "{said}");
        assert!(said.contains("continue as new"), "{said}");
    }
    let said = said_of_ten_steps(&store, |builder| builder).await;
    assert!(!said.contains("grows long"), "{said}");
}

/// Shows: D9
async fn a_loop_of_timers_that_are_due_ends_at_the_limit_of_the_history(store: TestStore) {
    let engine = store.builder().history_events(50).open().await.unwrap();
    engine.orchestrate(|_: Work, context: OrchestrationContext| async move {
        loop {
            context.timer(Duration::ZERO).await;
        }
    });
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Dead);
    let said = error(&store, task).await;
    assert!(said.contains("events") && said.contains("may have 50"), "{said}");
}
