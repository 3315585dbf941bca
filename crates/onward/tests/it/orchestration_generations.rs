//! The state that an orchestration carries along when it continues as new, on every store.

use onward::orchestration::{Either, OrchestrationContext, select};
use onward::{Engine, Failure, TaskId, TaskState};
use onward_store::StoreReads;

use crate::fixture::{TestStore, state};
use crate::orchestrations::{Work, engine, finish, start};

on_every_store! {
    an_unread_stop_request_is_carried_over_when_the_code_continues_as_new,
    a_request_to_stop_that_goes_along_ends_code_that_does_not_listen,
    a_received_stop_request_is_not_repeated_when_the_code_continues_as_new,
    an_answer_is_not_overwritten_when_the_code_continues_as_new,
    code_that_only_continues_as_new_ends_when_it_is_cancelled,
    code_that_listens_and_continues_as_new_for_each_signal_cleans_up,
}

/// Sends the event `go` a few times, and then a request to cancel, before any of them is read.
async fn go_and_cancel(engine: &Engine, task: TaskId, signals: usize) {
    for _ in 0..signals {
        engine.signal(task, "go", &()).await.unwrap();
    }
    engine.cancel(task).await.unwrap();
    engine.run_until_idle().await.unwrap();
}

/// Shows: D8
async fn code_that_only_continues_as_new_ends_when_it_is_cancelled(store: TestStore) {
    let engine = engine(&store, |work: Work, context: OrchestrationContext| async move {
        if work.0 == 7 {
            context.event::<()>("go")?.await?;
        }
        Err::<String, _>(context.continue_as_new(&Work(work.0 + 1)))
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    go_and_cancel(&engine, task, 1).await;
    assert_eq!(state(&store, task).await, TaskState::Cancelled);
}

/// Shows: D8
async fn code_that_listens_and_continues_as_new_for_each_signal_cleans_up(store: TestStore) {
    let engine = engine(&store, |work: Work, context: OrchestrationContext| async move {
        let cancelled = context.cancelled();
        match select(context.event::<()>("go")?, cancelled).await {
            Either::First(_) => Err(context.continue_as_new(&Work(work.0 + 1))),
            Either::Second(()) => Ok(format!("cleaned up after {}", work.0 - 7)),
        }
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    go_and_cancel(&engine, task, 3).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "cleaned up after 3");
}

/// Listens for a request to stop while it awaits an event, continues as new, and may then clean up.
async fn listen_and_begin_again(work: Work, context: OrchestrationContext) -> Result<String, Failure> {
    if work.0 == 7 {
        let _listening = context.cancelled();
        context.event::<()>("go")?.await?;
        return Err(context.continue_as_new(&Work(8)));
    }
    match select(context.event::<String>("end")?, context.cancelled()).await {
        Either::First(said) => said,
        Either::Second(()) => Ok("cleaned up".to_owned()),
    }
}

/// Shows: D8
async fn an_unread_stop_request_is_carried_over_when_the_code_continues_as_new(store: TestStore) {
    let engine = engine(&store, listen_and_begin_again).await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.cancel(task).await.unwrap();
    engine.run_until_idle().await.unwrap();
    engine.signal(task, "go", &()).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Completed);
    assert_eq!(finish(&engine, task).await.unwrap(), "cleaned up");
    engine.check_history(&engine.record_history(task).await.unwrap()).unwrap();
}

/// Shows: D8
async fn a_request_to_stop_that_goes_along_ends_code_that_does_not_listen(store: TestStore) {
    let engine = engine(&store, |work: Work, context: OrchestrationContext| async move {
        if work.0 == 8 {
            return context.event::<String>("end")?.await;
        }
        let _listening = context.cancelled();
        context.event::<()>("go")?.await?;
        Err(context.continue_as_new(&Work(8)))
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.cancel(task).await.unwrap();
    engine.signal(task, "go", &()).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Cancelled);
}

/// Shows: D8
async fn a_received_stop_request_is_not_repeated_when_the_code_continues_as_new(store: TestStore) {
    let engine = engine(&store, |work: Work, context: OrchestrationContext| async move {
        if work.0 == 8 {
            return context.event::<String>("end")?.await;
        }
        context.cancelled().await;
        Err(context.continue_as_new(&Work(8)))
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.cancel(task).await.unwrap();
    engine.run_until_idle().await.unwrap();
    engine.signal(task, "end", &"went on").await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "went on");
}

/// Replies to one update, then continues as new.
async fn answer_and_begin_again(work: Work, context: OrchestrationContext) -> Result<String, Failure> {
    context.updates::<()>("next")?.next().await.accept(&work.0)?;
    Err(context.continue_as_new(&Work(work.0 + 1)))
}

/// Sends an update in the background, and waits until the store has `waiting` requests.
async fn ask(store: &TestStore, engine: &Engine, task: TaskId, waiting: u64) -> tokio::task::JoinHandle<u32> {
    let asking = engine.clone();
    let asked = tokio::spawn(async move { asking.update::<_, u32>(task, "next", &()).await.unwrap() });
    while store.instance(task).await.unwrap().unwrap().waiting < waiting {
        tokio::task::yield_now().await;
    }
    asked
}

/// Shows: D3
async fn an_answer_is_not_overwritten_when_the_code_continues_as_new(store: TestStore) {
    let engine = engine(&store, answer_and_begin_again).await;
    let task = start(&engine).await;
    let first = ask(&store, &engine, task, 1).await;
    let second = ask(&store, &engine, task, 2).await;
    engine.run_until_idle().await.unwrap();
    let values = engine.orchestration_status(task).await.unwrap().record().values.len();
    assert_eq!(values, 2, "one answer has taken the place of the other");
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (7, 8));
}
