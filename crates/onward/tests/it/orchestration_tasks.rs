//! Orchestrations and their activities as tasks: timeouts, affinity keys, tags, pauses, sizes, and
//! memory.

use onward_store::StoreReads;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onward::limits::{LimitScope, SetLimit};
use onward::orchestration::{ActivityError, Either, OrchestrationContext, join_all, select};
use onward::queues::Scope;
use onward::task::WaitReason;
use onward::{Context, Engine, Failure, Name, NewTask, Priority, Task, TaskFilter, TaskId, TaskState};
use serde::{Deserialize, Serialize};

use crate::fixture::{Gate, SECOND, TestStore, error, record, start, state, stop};

on_every_store! {
    an_activity_has_its_timeout,
    an_activity_has_its_queue_and_group_and_invalid_names_are_errors_in_the_code,
    an_activity_has_its_affinity_key_priority_and_tags,
    an_activity_that_is_dropped_while_it_runs_is_notified,
    an_activity_that_is_too_large_is_an_error_and_the_code_continues,
    a_result_that_is_too_large_fails_with_the_limit,
    a_paused_orchestration_has_no_turns_and_loses_nothing,
    what_comes_for_an_orchestration_in_memory_has_nothing_replayed,
    code_says_nothing_twice_to_a_log_when_it_asks_whether_it_is_replayed,
    a_dropped_activity_does_not_reply_after_the_orchestration_continued_as_new,
    the_limit_of_a_group_holds_for_activities_and_why_names_it,
    an_activity_without_further_attempts_is_a_dead_letter,
    the_most_urgent_activity_runs_first,
}

/// An orchestration whose code each test defines.
#[derive(Serialize, Deserialize)]
struct Work(u32);

impl Task for Work {
    const KIND: &'static str = "work";
    const ORCHESTRATION: bool = true;
    type Output = String;
}

async fn engine<F, A>(store: &TestStore, code: F) -> Engine
where
    F: Fn(Work, OrchestrationContext) -> A + Send + Sync + 'static,
    A: Future<Output = Result<String, Failure>> + Send + 'static,
{
    let engine = store.engine().await;
    engine.orchestrate(code);
    engine
}

/// Submits the orchestration and runs it as far as it gets.
async fn go(engine: &Engine, work: u32) -> TaskId {
    let task = engine.submit(Work(work)).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    task
}

async fn result(store: &TestStore, task: TaskId) -> String {
    let record = record(store, task).await;
    serde_json::from_slice(&record.result.into_bytes().unwrap_or_else(|| panic!("{:?}", record.errors))).unwrap()
}

fn large() -> Vec<u8> {
    vec![b'1'; onward_store::bounds::PAYLOAD_BYTES + 1]
}

/// Shows: D2
async fn an_activity_has_its_timeout(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let hung = context.activity_task::<()>(NewTask::new("hang")?).timeout(SECOND).await;
        let Err(ActivityError::Ended { state, error, .. }) = hung else { return Ok(format!("{hung:?}")) };
        Ok(format!("{state}: {}", error.unwrap_or_default()))
    })
    .await;
    engine.handle("hang", |_| std::future::pending::<Result<(), Failure>>());
    let run = start(&engine);
    let task = engine.submit(Work(1)).await.unwrap().id();
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.wait(task).await.unwrap() }
    });
    store.advance_until(SECOND, waiting).await;
    let said = result(&store, task).await;
    assert!(said == "dead: timed out after 1s", "{said}");
    stop(&engine, run).await;
}

/// Shows: D2
async fn an_activity_has_its_queue_and_group_and_invalid_names_are_errors_in_the_code(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let unnamed = context.activity_task::<()>(NewTask::new("call")?).group("").await.unwrap_err().to_string();
        let task = context.activity_task::<()>(NewTask::new("call")?);
        task.queue("slow").group("tenant-7").await?;
        Ok(unnamed)
    })
    .await;
    engine.handle("call", |_| async { Ok(()) });
    let task = go(&engine, 1).await;
    let said = result(&store, task).await;
    assert!(said.contains("cannot be submitted"), "{said}");
    let call = record(&store, TaskId(task.0 + 1)).await;
    assert_eq!((call.queue.as_str(), call.group.unwrap().as_str()), ("slow", "tenant-7"));
}

/// Shows: D2
async fn an_activity_has_its_affinity_key_priority_and_tags(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let task = context.activity_task::<()>(NewTask::new("call")?);
        task.session("robot-4").priority(Priority(200)).tag("city", "Pisa").await?;
        Ok(String::new())
    })
    .await;
    let task = go(&engine, 1).await;
    let call = record(&store, TaskId(task.0 + 1)).await;
    assert_eq!(call.affinity.unwrap().as_str(), "robot-4");
    assert_eq!((call.priority.0, call.tags.get("city")), (200, Some("Pisa")));
    assert_eq!(call.parent, Some(task));
}

/// Shows: D2
async fn an_activity_that_is_dropped_while_it_runs_is_notified(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let slow = context.activity_task::<()>(NewTask::new("slow")?);
        match select(slow, context.event::<()>("enough")?).await {
            Either::First(_) => Ok("done".to_owned()),
            Either::Second(_) => Ok("dropped".to_owned()),
        }
    })
    .await;
    let started = Arc::new(tokio::sync::Notify::new());
    let reported = Arc::clone(&started);
    engine.handle("slow", move |context: Context| {
        reported.notify_one();
        async move {
            context.cancelled().cancelled().await;
            Err::<(), _>(Failure::permanent("it was told to stop"))
        }
    });
    let run = start(&engine);
    let task = engine.submit(Work(1)).await.unwrap().id();
    started.notified().await;
    engine.signal(task, "enough", &()).await.unwrap();
    let ended = tokio::spawn({
        let engine = engine.clone();
        async move { (engine.wait(task).await.unwrap(), engine.wait(TaskId(task.0 + 1)).await.unwrap()) }
    });
    let (_, slow) = store.advance_until(SECOND / 10, ended).await;
    assert_eq!((result(&store, task).await.as_str(), slow.state), ("dropped", TaskState::Cancelled));
    stop(&engine, run).await;
}

/// Shows: D9
async fn an_activity_that_is_too_large_is_an_error_and_the_code_continues(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let task = NewTask { payload: large().into(), ..NewTask::new("call")? };
        let refused = context.activity_task::<()>(task).await.unwrap_err();
        Ok(refused.to_string())
    })
    .await;
    let task = go(&engine, 1).await;
    let said = result(&store, task).await;
    assert!(said.contains("1048577 bytes"), "{said}");
}

/// Shows: D9
async fn a_result_that_is_too_large_fails_with_the_limit(store: TestStore) {
    let engine = engine(&store, |_, _| async { Ok(String::from_utf8(large())?) }).await;
    let task = go(&engine, 1).await;
    assert_eq!(state(&store, task).await, TaskState::Dead);
    let said = error(&store, task).await;
    assert!(said.contains("1048576"), "{said}");
}

/// Shows: D8
async fn a_paused_orchestration_has_no_turns_and_loses_nothing(store: TestStore) {
    let engine = engine(&store, |_, context| async move { context.event::<String>("go")?.await }).await;
    let task = go(&engine, 1).await;
    let kind = Scope::Kind(Name::new("work").unwrap());
    engine.pause(kind.clone()).await.unwrap();
    engine.signal(task, "go", &"gone").await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Waiting);
    engine.resume(kind).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(result(&store, task).await, "gone");
}

/// Shows: D11
async fn what_comes_for_an_orchestration_in_memory_has_nothing_replayed(store: TestStore) {
    let begun = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&begun);
    let engine = engine(&store, move |_, context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            for _ in 0..10 {
                context.event::<u32>("go")?.await?;
            }
            Ok("gone".to_owned())
        }
    })
    .await;
    let run = start(&engine);
    let task = engine.submit(Work(1)).await.unwrap().id();
    for sent in 0..10 {
        engine.signal(task, "go", &sent).await.unwrap();
    }
    engine.wait(task).await.unwrap();
    assert_eq!(result(&store, task).await, "gone");
    assert_eq!(begun.load(Ordering::SeqCst), 1);
    stop(&engine, run).await;
}

/// Shows: D10
async fn code_says_nothing_twice_to_a_log_when_it_asks_whether_it_is_replayed(store: TestStore) {
    let said = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&said);
    let code = move |_: Work, context: OrchestrationContext| {
        let said = Arc::clone(&counted);
        async move {
            for _ in 0..3 {
                if !context.is_replaying() {
                    said.fetch_add(1, Ordering::SeqCst);
                }
                context.event::<()>("go")?.await?;
            }
            Ok("gone".to_owned())
        }
    };
    let task = go(&engine(&store, code.clone()).await, 1).await;
    for _ in 0..3 {
        let another = engine(&store, code.clone()).await;
        another.signal(task, "go", &()).await.unwrap();
        another.run_until_idle().await.unwrap();
    }
    assert_eq!((result(&store, task).await, said.load(Ordering::SeqCst)), ("gone".to_owned(), 3));
}

/// Shows: D4
async fn a_dropped_activity_does_not_reply_after_the_orchestration_continued_as_new(store: TestStore) {
    let engine = engine(&store, |work, context| async move {
        if work.0 == 0 {
            let slow = context.activity_task::<u32>(NewTask::new("nobody-does-this")?).start();
            select(slow, context.timer(SECOND)).await;
            return Err(context.continue_as_new(&Work(1)));
        }
        Ok(context.activity_task::<u32>(NewTask::new("seven")?).await?.to_string())
    })
    .await;
    engine.handle("seven", |_| async { Ok::<_, Failure>("7") });
    let task = go(&engine, 0).await;
    store.clock.advance(SECOND);
    engine.run_until_idle().await.unwrap();
    assert_eq!(result(&store, task).await, "7");
}

/// Calls three activities of a group at once.
async fn three_calls(_: Work, context: OrchestrationContext) -> Result<String, Failure> {
    let calls = (0..3).map(|_| NewTask::new("call").map(|call| context.activity_task::<()>(call).group("tenant-7")));
    join_all(calls.collect::<Result<Vec<_>, _>>()?).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok("called".to_owned())
}

/// Shows: D2, T9
async fn the_limit_of_a_group_holds_for_activities_and_why_names_it(store: TestStore) {
    let engine = engine(&store, three_calls).await;
    let gate = Gate::new();
    engine.handle("call", gate.handler());
    let group = Name::new("tenant-7").unwrap();
    engine.set_limit(SetLimit::group(group.clone()).concurrency(1)).await.unwrap();
    let run = start(&engine);
    let task = engine.submit(Work(1)).await.unwrap().id();
    gate.entered(1).await;
    let why = engine.why(TaskId(task.0 + 2)).await.unwrap();
    let limit_on = LimitScope::Group(group);
    assert!(matches!(&why[0], WaitReason::Concurrency { limit_on: on, .. } if *on == limit_on), "{why:?}");
    let running = TaskFilter { states: vec![TaskState::Running], ..TaskFilter::default() };
    assert_eq!(store.count(running).await.unwrap(), 1);
    gate.open(3);
    engine.wait(task).await.unwrap();
    assert_eq!(result(&store, task).await, "called");
    stop(&engine, run).await;
}

/// Shows: D2, T8
async fn an_activity_without_further_attempts_is_a_dead_letter(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let failed = context.activity_task::<()>(NewTask::new("call")?).await.unwrap_err();
        Ok(failed.to_string())
    })
    .await;
    engine.handle("call", |_| async { Err::<(), _>(Failure::retryable("engaged")) });
    let task = go(&engine, 1).await;
    let dead = TaskFilter { states: vec![TaskState::Dead], ..TaskFilter::default() };
    let dead = store.tasks(dead, onward_store::Page { before: None, limit: 10 }).await.unwrap().tasks;
    assert_eq!(
        dead.iter().map(|task| (task.id, task.kind.as_str())).collect::<Vec<_>>(),
        [(TaskId(task.0 + 1), "call")]
    );
    assert!(result(&store, task).await.contains("engaged"));
}

/// Shows: D2, T4
async fn the_most_urgent_activity_runs_first(store: TestStore) {
    let engine = store.builder().concurrency(1).open().await.unwrap();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&order);
    engine.handle("call", move |context: Context| {
        noted.lock().unwrap().push(context.priority().0);
        async { Ok::<_, Failure>(()) }
    });
    engine.orchestrate(|_: Work, context: OrchestrationContext| async move {
        let call =
            |priority| NewTask::new("call").map(|call| context.activity_task::<()>(call).priority(Priority(priority)));
        let calls = [1, 200, 100].into_iter().map(call).collect::<Result<Vec<_>, _>>()?;
        join_all(calls).await;
        Ok(String::new())
    });
    go(&engine, 1).await;
    assert_eq!(*order.lock().unwrap(), [200, 100, 1]);
}
