//! Orchestrations that start in the middle of another's history, on every store.

use onward_store::StoreReads;
use std::sync::Arc;

use onward::orchestration::{Either, OrchestrationContext, select};
use onward::{Engine, Failure, NewTask, TaskFilter, TaskId, TaskState};
use onward_testkit::{Fault, FaultyStore};

use crate::fixture::{Gate, SECOND, TestStore, error, start as start_run, state, stop};
use crate::orchestrations::{Double, Work, engine, finish, start};

on_every_store! {
    a_fork_waits_while_the_history_of_its_origin_cannot_be_read,
    a_fork_that_continues_as_new_goes_on_with_a_history_of_its_own,
    a_fork_of_a_fork_submits_again_what_was_under_way,
    a_fork_shows_what_its_origin_showed_where_it_begins,
    what_a_fork_has_let_go_of_answers_nothing_after_it_has_continued_as_new,
    a_fork_takes_over_no_other_history_than_the_one_that_was_forked,
}

/// Forks an orchestration at the end of its history.
async fn fork(engine: &Engine, task: TaskId) -> TaskId {
    let length = engine.orchestration_history(task).await.unwrap().len() as u64;
    engine.fork(task, length).await.unwrap()
}

/// Shows: D8
async fn a_fork_waits_while_the_history_of_its_origin_cannot_be_read(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move { context.event::<String>("go")?.await };
    let first = engine(&store, code).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    let fork = fork(&first, task).await;
    let faulty = Arc::new(FaultyStore::new(store.shared()));
    faulty.fail_reads_from(1, Fault::Busy);
    let second = store.builder().store(faulty.clone()).open().await.unwrap();
    second.orchestrate(code);
    second.run_until_idle().await.unwrap();
    assert_eq!(state(&store, fork).await, TaskState::Scheduled, "{}", error(&store, fork).await);
    faulty.heal();
    store.clock.advance(onward::bounds::STORE_RETRY_LONGEST);
    second.signal(fork, "go", &"on").await.unwrap();
    assert_eq!(finish(&second, fork).await.unwrap(), "on");
}

/// Shows: D8
async fn a_fork_that_continues_as_new_goes_on_with_a_history_of_its_own(store: TestStore) {
    let engine = engine(&store, |work: Work, context| async move {
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

/// Awaits an event while an activity is under way.
async fn slow_and_event(_: Work, context: OrchestrationContext) -> Result<String, Failure> {
    let slow = context.activity_task::<u32>(NewTask::new("slow")?).start();
    let sent = context.event::<u32>("add")?.await?;
    Ok((slow.await? + sent).to_string())
}

async fn children(store: &TestStore, task: TaskId) -> Vec<TaskId> {
    let filter = TaskFilter { parent: Some(task), ..TaskFilter::default() };
    let page = store.tasks(filter, onward::store::Page::default()).await.unwrap();
    page.tasks.iter().map(|task| task.id).collect()
}

/// Shows: D8
async fn a_fork_of_a_fork_submits_again_what_was_under_way(store: TestStore) {
    let first = engine(&store, slow_and_event).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    let child = fork(&first, task).await;
    first.run_until_idle().await.unwrap();
    let grandchild = fork(&first, child).await;
    first.run_until_idle().await.unwrap();
    assert_eq!(children(&store, grandchild).await.len(), 1);
    let second = engine(&store, slow_and_event).await;
    second.handle("slow", |_| async { Ok::<_, Failure>("6") });
    second.signal(grandchild, "add", &1).await.unwrap();
    assert_eq!(finish(&second, grandchild).await.unwrap(), "7");
}

/// Drops an activity when it continues as new, and then awaits another in the same position.
async fn let_go_and_begin_again(work: Work, context: OrchestrationContext) -> Result<String, Failure> {
    match work.0 {
        7 => Err(context.continue_as_new(&Work(8))),
        8 => {
            context.event::<()>("go")?.await?;
            let slow = context.activity_task::<String>(NewTask::new("slow")?);
            match select(slow, context.event::<()>("drop")?).await {
                Either::First(said) => Ok(said?),
                Either::Second(_) => Err(context.continue_as_new(&Work(9))),
            }
        }
        _ => {
            let _beside = context.event::<()>("beside")?;
            Ok(context.activity_task::<String>(NewTask::new("other")?).await?)
        }
    }
}

/// Shows: D8, D6
async fn a_fork_shows_what_its_origin_showed_where_it_begins(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move {
        context.set_status(&"picking")?;
        context.set_value("boxes", &1)?;
        context.event::<()>("go")?.await?;
        context.set_status(&"sent")?;
        context.set_value("boxes", &2)?;
        context.event::<String>("end")?.await
    };
    let first = engine(&store, code).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    let length = first.orchestration_history(task).await.unwrap().len() as u64;
    first.signal(task, "go", &()).await.unwrap();
    first.run_until_idle().await.unwrap();
    let fork = first.fork(task, length).await.unwrap();
    first.run_until_idle().await.unwrap();
    let shown = first.orchestration_status(fork).await.unwrap();
    assert_eq!(shown.record().status.as_deref(), Some(&b"\"picking\""[..]));
    assert_eq!(shown.record().values["boxes"], "1");
}

fn saying(
    gate: &Gate,
    text: &'static str,
) -> impl Fn(onward::Context) -> futures_util::future::BoxFuture<'static, Result<String, Failure>> + use<> {
    let gate = gate.clone();
    move |_| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.pass().await;
            Ok(format!("{text:?}"))
        })
    }
}

/// Shows: D8
async fn what_a_fork_has_let_go_of_answers_nothing_after_it_has_continued_as_new(store: TestStore) {
    let engine = engine(&store, let_go_and_begin_again).await;
    let (slow, other) = (Gate::new(), Gate::new());
    engine.handle("slow", saying(&slow, "slow"));
    engine.handle("other", saying(&other, "other"));
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    let fork = fork(&engine, task).await;
    let run = start_run(&engine);
    engine.signal(fork, "go", &()).await.unwrap();
    slow.entered(1).await;
    let let_go = children(&store, fork).await.remove(0);
    engine.signal(fork, "drop", &()).await.unwrap();
    other.entered(1).await;
    slow.open(1);
    engine.wait(let_go).await.unwrap();
    other.open(1);
    let record = engine.wait(fork).await.unwrap();
    assert_eq!(record.result.as_deref(), Some(&b"\"other\""[..]), "{:?}", record.errors);
    stop(&engine, run).await;
}

/// Shows: D8
async fn a_fork_takes_over_no_other_history_than_the_one_that_was_forked(store: TestStore) {
    let engine = store.builder().turns(1).open().await.unwrap();
    engine.orchestrate(|work: Work, context: OrchestrationContext| async move {
        context.event::<()>("go")?.await?;
        if work.0 == 7 { Err(context.continue_as_new(&Work(8))) } else { Ok("over".to_owned()) }
    });
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.signal(task, "go", &()).await.unwrap();
    store.clock.advance(SECOND);
    let fork = fork(&engine, task).await;
    engine.run_until_idle().await.unwrap();
    assert_eq!(engine.orchestration_status(task).await.unwrap().record().generation, 1);
    assert_eq!(state(&store, fork).await, TaskState::Dead);
    let said = error(&store, fork).await;
    assert!(said.contains("has continued as new"), "{said}");
}
