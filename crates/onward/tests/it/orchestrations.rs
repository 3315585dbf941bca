//! Orchestrations: durable functions, on every store.

use onward_store::StoreReads;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onward::orchestration::{
    ActivityError, Either, HistoryEvent, OrchestrationContext, join_all, select, try_join_all,
};
use onward::task::OnDuplicate;
use onward::{Engine, Failure, RetryPolicy, Task, TaskError, TaskId, TaskState};
use serde::{Deserialize, Serialize};

use crate::fixture::{self, Gate, TestStore, error, record, state};

on_every_store! {
    an_orchestration_awaits_an_activity,
    activities_are_joined_in_their_order,
    an_activity_that_fails_says_how,
    the_error_of_an_orchestration_is_that_of_its_code,
    an_activity_is_retried_by_its_policy,
    a_month_of_timers_passes_when_the_clock_is_moved,
    what_was_sent_before_it_is_waited_for_is_taken_in_order,
    a_signal_finds_its_orchestration_by_kind_and_key,
    what_loses_a_select_is_cancelled,
    what_loses_a_select_after_a_takeover_is_cancelled_too,
    what_is_random_is_the_same_after_a_takeover,
    a_step_runs_once_whichever_engine_continues,
    steps_run_beside_activities,
    a_step_that_panics_is_a_failure,
    an_orchestration_awaits_another,
    a_start_of_a_running_orchestration_is_reported,
    an_orchestration_continues_as_new_with_what_waits_for_it,
    an_orchestration_says_where_it_stands,
    a_cancelled_orchestration_ends_and_cancels_what_it_waits_for,
    a_running_activity_of_a_cancelled_orchestration_is_notified_at_once,
    code_that_is_cancelled_cleans_up,
    code_that_does_something_else_is_a_dead_letter_until_it_is_mended,
    code_that_panics_is_a_dead_letter_that_goes_on_where_it_was,
    code_that_awaits_a_foreign_future_is_reported,
    a_patch_is_taken_by_those_who_come_by_later,
    an_orchestration_waits_for_an_engine_that_has_its_code,
    a_history_lists_what_happened,
    an_orchestration_that_was_put_away_goes_on,
}

const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Serialize, Deserialize)]
pub(crate) struct Double(pub(crate) u32);

impl Task for Double {
    const KIND: &'static str = "double";
    type Output = u32;
}

/// An orchestration whose code each test defines.
#[derive(Serialize, Deserialize, Clone)]
pub(crate) struct Work(pub(crate) u32);

impl Task for Work {
    const KIND: &'static str = "work";
    const ORCHESTRATION: bool = true;
    type Output = String;
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Part(pub(crate) String);

impl Task for Part {
    const KIND: &'static str = "part";
    const ORCHESTRATION: bool = true;
    type Output = String;

    fn key(&self) -> Option<String> {
        Some(self.0.clone())
    }

    fn on_duplicate(&self) -> OnDuplicate {
        OnDuplicate::Reject
    }
}

pub(crate) type Answer = Result<String, Failure>;

/// Opens an engine that doubles, and runs `code` as `work`.
pub(crate) async fn engine<F, A>(store: &TestStore, code: F) -> Engine
where
    F: Fn(Work, OrchestrationContext) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let engine = store.engine().await;
    engine.register(|task: Double, _| async move { Ok(task.0 * 2) });
    engine.orchestrate(code);
    engine
}

pub(crate) async fn start(engine: &Engine) -> TaskId {
    engine.submit(Work(7)).await.unwrap().id()
}

pub(crate) async fn finish(engine: &Engine, task: TaskId) -> Result<String, TaskError> {
    engine.run_until_idle().await.unwrap();
    let record = engine.wait(task).await.unwrap();
    match record.state {
        TaskState::Completed => Ok(serde_json::from_slice(&record.result.into_bytes().unwrap()).unwrap()),
        TaskState::Failed => Err(TaskError::Failed { task, error: record.errors[0].message.clone() }),
        other => panic!("it is {other}: {:?}", record.errors),
    }
}

/// Shows: D1
async fn an_orchestration_awaits_an_activity(store: TestStore) {
    let engine = engine(&store, |work, context| async move {
        let doubled = context.activity(Double(work.0)).await?;
        Ok(format!("{doubled}"))
    })
    .await;
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "14");
}

/// Shows: D4
async fn activities_are_joined_in_their_order(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let doubled = try_join_all((0..50).map(|number| context.activity(Double(number)))).await?;
        Ok(format!("{}", doubled.iter().enumerate().all(|(place, doubled)| *doubled == place as u32 * 2)))
    })
    .await;
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "true");
}

/// Shows: D9
async fn an_activity_that_fails_says_how(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let failed = context.activity_task::<u32>(onward::NewTask::new("broken")?).await;
        let Err(ActivityError::Ended { state, error, .. }) = failed else { return Ok(format!("{failed:?}")) };
        Ok(format!("{state}: {}", error.unwrap()))
    })
    .await;
    engine.handle("broken", |_| async { Err::<(), _>(Failure::permanent("no stock")) });
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "failed: no stock");
}

/// Shows: D9
async fn the_error_of_an_orchestration_is_that_of_its_code(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.activity_task::<u32>(onward::NewTask::new("broken")?).await?;
        Ok(String::new())
    })
    .await;
    engine.handle("broken", |_| async { Err::<(), _>(Failure::permanent("no stock")) });
    let task = start(&engine).await;
    let failed = finish(&engine, task).await.unwrap_err().to_string();
    assert!(failed.ends_with("the activity `broken` has failed: no stock"), "{failed}");
}

/// Shows: D2
async fn an_activity_is_retried_by_its_policy(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let backoff = onward::Backoff::Constant { delay: Duration::ZERO };
        let task = onward::NewTask::new("flaky")?;
        let answer = context.activity_task::<u32>(task).retry(RetryPolicy { attempts: 3, backoff }).await?;
        Ok(answer.to_string())
    })
    .await;
    engine.handle("flaky", |context: onward::Context| async move {
        if context.attempt() < 3 { Err(Failure::retryable("not yet")) } else { Ok("5") }
    });
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "5");
}

/// Shows: D3, D12, B7
async fn a_month_of_timers_passes_when_the_clock_is_moved(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let began = context.now();
        for _ in 0..30 {
            context.timer(MONTH / 30).await;
        }
        Ok(format!("{:?}", context.now() - began))
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    for _ in 0..30 {
        assert_eq!(state(&store, task).await, TaskState::Scheduled);
        store.clock.advance(MONTH / 30);
        engine.run_until_idle().await.unwrap();
    }
    assert_eq!(finish(&engine, task).await.unwrap(), format!("{MONTH:?}"));
}

/// Shows: D3
async fn what_was_sent_before_it_is_waited_for_is_taken_in_order(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(context.event::<String>("paid")?.await?);
        }
        Ok(taken.join(" "))
    })
    .await;
    let task = start(&engine).await;
    for payload in ["a", "b", "c"] {
        engine.signal(task, "paid", &payload).await.unwrap();
    }
    assert_eq!(finish(&engine, task).await.unwrap(), "a b c");
}

/// Shows: D3
async fn a_signal_finds_its_orchestration_by_kind_and_key(store: TestStore) {
    let engine = engine(&store, |_, _| async { Ok(String::new()) }).await;
    engine.orchestrate(|_: Part, context| async move { context.event::<String>("go")?.await });
    let task = engine.submit(Part("a".into())).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    engine.signal_key("part", "a", "go", &"gone").await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "gone");
    let missing = engine.signal_key("part", "a", "go", &"gone").await.unwrap_err().to_string();
    assert!(missing.contains("no active orchestration of kind `part` has the key `a`"), "{missing}");
}

/// Shows: D4
async fn what_loses_a_select_is_cancelled(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let slow = context.activity_task::<()>(onward::NewTask::new("nobody-does-this")?);
        let won = select(slow, context.timer(Duration::from_secs(1))).await;
        Ok(format!("{}", matches!(won, Either::Second(()))))
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    store.clock.advance(Duration::from_secs(1));
    assert_eq!(finish(&engine, task).await.unwrap(), "true");
    assert_eq!(state(&store, TaskId(task.0 + 1)).await, TaskState::Cancelled);
}

/// Shows: D4
async fn what_loses_a_select_after_a_takeover_is_cancelled_too(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move {
        let slow = context.activity_task::<()>(onward::NewTask::new("nobody-does-this")?);
        let won = select(slow, context.timer(Duration::from_secs(1))).await;
        Ok(format!("{}", matches!(won, Either::Second(()))))
    };
    let first = engine(&store, code).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    store.clock.advance(Duration::from_secs(1));
    assert_eq!(finish(&engine(&store, code).await, task).await.unwrap(), "true");
    assert_eq!(state(&store, TaskId(task.0 + 1)).await, TaskState::Cancelled);
}

/// Shows: D7
async fn what_is_random_is_the_same_after_a_takeover(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move {
        let before = (context.uuid(), context.random(), context.now());
        context.set_value("before", &(&before.0, before.1, before.2))?;
        context.event::<()>("go")?.await?;
        context.set_value("after", &(&before.0, before.1, before.2))?;
        Ok(before.0)
    };
    let first = engine(&store, code).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    first.signal(task, "go", &()).await.unwrap();
    let uuid = finish(&engine(&store, code).await, task).await.unwrap();
    assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"), "{uuid}");
    let status = first.orchestration_status(task).await.unwrap();
    assert_eq!(status.record().values["before"], status.record().values["after"]);
}

/// Shows: D2
async fn a_step_runs_once_whichever_engine_continues(store: TestStore) {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let code = move |_: Work, context: OrchestrationContext| {
        let runs = Arc::clone(&counted);
        async move {
            let number = context.step("number", move || async move { Ok(runs.fetch_add(1, Ordering::SeqCst)) }).await?;
            context.event::<()>("go")?.await?;
            Ok(number.to_string())
        }
    };
    let first = engine(&store, code.clone()).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    first.signal(task, "go", &()).await.unwrap();
    assert_eq!(finish(&engine(&store, code).await, task).await.unwrap(), "0");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// Shows: D2
async fn steps_run_beside_activities(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let doubled = context.activity(Double(4)).start();
        let step = context.step("three", || async { Ok(3) }).await?;
        Ok(format!("{step} {}", doubled.await?))
    })
    .await;
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "3 8");
}

/// Shows: D2
async fn a_step_that_panics_is_a_failure(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let failed = context.step::<(), _, _>("risky", || async { panic!("oops") }).await;
        Ok(failed.unwrap_err().message().to_owned())
    })
    .await;
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "the step `risky`: it panicked: oops");
}

/// Shows: D4
async fn an_orchestration_awaits_another(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let parts = join_all(["a", "b"].map(|part| context.orchestration(Part(part.into())))).await;
        Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.join(" "))
    })
    .await;
    engine.orchestrate(|part: Part, context| async move {
        context.timer(Duration::from_secs(1)).await;
        Ok(format!("part {}", part.0))
    });
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    store.clock.advance(Duration::from_secs(1));
    assert_eq!(finish(&engine, task).await.unwrap(), "part a part b");
}

/// Shows: D4
/// Beats: silent-duplicate-start
async fn a_start_of_a_running_orchestration_is_reported(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let started = context.orchestration(Part("a".into())).await;
        let Err(ActivityError::NotStarted { existing, .. }) = started else { return Ok(format!("{started:?}")) };
        Ok(format!("it is {existing}"))
    })
    .await;
    engine.orchestrate(|_: Part, context| async move { context.event::<String>("go")?.await });
    let part = engine.submit(Part("a".into())).await.unwrap().id();
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), format!("it is {part}"));
}

/// Shows: D4
async fn an_orchestration_continues_as_new_with_what_waits_for_it(store: TestStore) {
    let engine = engine(&store, |work, context| async move {
        let sent = context.event::<u32>("add")?.await?;
        context.detach(Double(sent))?;
        if context.generation() == 3 {
            return Ok(format!("{}", work.0 + sent));
        }
        Err(context.continue_as_new(&Work(work.0 + sent)))
    })
    .await;
    let task = start(&engine).await;
    for sent in [1, 10, 100, 1000] {
        engine.signal(task, "add", &sent).await.unwrap();
    }
    assert_eq!(finish(&engine, task).await.unwrap(), "1118");
    let doubled = engine.store().statistics().await.unwrap();
    let doubled = doubled.iter().find(|kind| kind.kind == "double").map(|kind| kind.ended.completed);
    assert_eq!(doubled, Some(4));
}

/// Shows: D6
async fn an_orchestration_says_where_it_stands(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.set_status(&"waiting for money")?;
        context.set_value("cents", &1999)?;
        context.event::<()>("paid")?.await?;
        context.set_status(&"paid")?;
        context.remove_value("cents");
        Ok(String::new())
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    let status = engine.orchestration_status(task).await.unwrap();
    assert_eq!(status.status::<String>().unwrap().as_deref(), Some("waiting for money"));
    assert_eq!(status.value::<u32>("cents").unwrap(), Some(1999));
    engine.signal(task, "paid", &()).await.unwrap();
    finish(&engine, task).await.unwrap();
    let status = engine.orchestration_status(task).await.unwrap();
    assert_eq!(status.status::<String>().unwrap().as_deref(), Some("paid"));
    assert_eq!(status.value::<u32>("cents").unwrap(), None);
}

/// Shows: D8
async fn a_cancelled_orchestration_ends_and_cancels_what_it_waits_for(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.activity_task::<()>(onward::NewTask::new("nobody-does-this")?).await?;
        Ok(String::new())
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.cancel(task).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Cancelled);
    assert_eq!(state(&store, TaskId(task.0 + 1)).await, TaskState::Cancelled);
}

/// Shows: D8
/// Beats: late-cancel
async fn a_running_activity_of_a_cancelled_orchestration_is_notified_at_once(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.activity_task::<()>(onward::NewTask::new("stop")?).await?;
        Ok(String::new())
    })
    .await;
    let gate = Gate::new();
    engine.handle("stop", gate.stoppable());
    let task = start(&engine).await;
    let run = fixture::start(&engine);
    gate.entered(1).await;
    engine.cancel(task).await.unwrap();
    // The clock stands still, so no engine polls for cancellations of other processes.
    let activity = engine.wait(TaskId(task.0 + 1)).await.unwrap();
    assert_eq!(activity.state, TaskState::Cancelled);
    fixture::stop(&engine, run).await;
}

/// Shows: D8
async fn code_that_is_cancelled_cleans_up(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        match select(context.event::<()>("never")?, context.cancelled()).await {
            Either::First(_) => Ok("sent".to_owned()),
            Either::Second(()) => Ok(format!("cleaned up {}", context.activity(Double(1)).await?)),
        }
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.cancel(task).await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "cleaned up 2");
}

/// Shows: D5, D9
async fn code_that_does_something_else_is_a_dead_letter_until_it_is_mended(store: TestStore) {
    let right = |_: Work, context: OrchestrationContext| async move {
        let doubled = context.activity(Double(2)).await?;
        context.event::<()>("go")?.await?;
        Ok(doubled.to_string())
    };
    let first = engine(&store, right).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    first.signal(task, "go", &()).await.unwrap();
    let wrong = |_: Work, context: OrchestrationContext| async move {
        context.timer(MONTH).await;
        Ok(String::new())
    };
    engine(&store, wrong).await.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Dead);
    let said = error(&store, task).await;
    let expected = "at event 1 the history has the submit of a `double` task, and the code has a timer of 30 d, until 2024-01-31T00:00:00Z; ";
    assert!(said.contains(expected), "{said}");
    let mended = engine(&store, right).await;
    mended.retry(task).await.unwrap();
    assert_eq!(finish(&mended, task).await.unwrap(), "4");
}

/// Shows: D9
async fn code_that_panics_is_a_dead_letter_that_goes_on_where_it_was(store: TestStore) {
    let code = |panics: bool| {
        move |_: Work, context: OrchestrationContext| async move {
            let doubled = context.activity(Double(2)).await?;
            let sent = context.event::<u32>("go")?.await?;
            assert!(!panics, "a bug");
            Ok((doubled + sent).to_string())
        }
    };
    let first = engine(&store, code(true)).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    first.signal(task, "go", &1).await.unwrap();
    first.run_until_idle().await.unwrap();
    let said = error(&store, task).await;
    assert!(said.contains("it panicked: a bug"), "{said}");
    let mended = engine(&store, code(false)).await;
    mended.retry(task).await.unwrap();
    assert_eq!(finish(&mended, task).await.unwrap(), "5");
}

/// Shows: D9
async fn code_that_awaits_a_foreign_future_is_reported(store: TestStore) {
    let engine = engine(&store, |_, _| async {
        std::future::pending::<()>().await;
        Ok(String::new())
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    let said = error(&store, task).await;
    assert!(said.contains("no orchestration can wait for"), "{said}");
}

/// Shows: D5
async fn a_patch_is_taken_by_those_who_come_by_later(store: TestStore) {
    let old = |_: Work, context: OrchestrationContext| async move {
        context.event::<()>("go")?.await?;
        Ok("old".to_owned())
    };
    let new = |_: Work, context: OrchestrationContext| async move {
        let doubled = if context.patched("double-first") { Some(context.activity(Double(1)).await?) } else { None };
        context.event::<()>("go")?.await?;
        Ok(format!("new {doubled:?}"))
    };
    let before = engine(&store, old).await;
    let early = start(&before).await;
    before.run_until_idle().await.unwrap();
    let after = engine(&store, new).await;
    let late = start(&after).await;
    after.run_until_idle().await.unwrap();
    for task in [early, late] {
        after.signal(task, "go", &()).await.unwrap();
    }
    let again = engine(&store, new).await;
    assert_eq!(finish(&again, early).await.unwrap(), "new None");
    assert_eq!(finish(&again, late).await.unwrap(), "new Some(2)");
}

/// Shows: D9
async fn an_orchestration_waits_for_an_engine_that_has_its_code(store: TestStore) {
    let without = store.engine().await;
    without.handle_any(|_| async { Ok::<_, Failure>("done") });
    let task = without.submit(Work(1)).await.unwrap().id();
    without.run_until_idle().await.unwrap();
    assert_eq!((state(&store, task).await, record(&store, task).await.attempts), (TaskState::Waiting, 0));
    let with = engine(&store, |_, _| async { Ok("here".to_owned()) }).await;
    assert_eq!(finish(&with, task).await.unwrap(), "here");
}

/// Shows: D10
async fn a_history_lists_what_happened(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let doubled = context.activity(Double(3)).await?;
        Ok(doubled.to_string())
    })
    .await;
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap();
    let history = engine.orchestration_history(task).await.unwrap();
    let [HistoryEvent::Started { .. }, submitted, HistoryEvent::TurnBegan { .. }, ended] = &history[..] else {
        panic!("another history: {history:?}");
    };
    assert_eq!(*submitted, HistoryEvent::TaskSubmitted { operation: 1, kind: "double".into() });
    assert!(matches!(ended, HistoryEvent::TaskEnded { operation: 1, .. }), "{ended:?}");
}

/// Shows: D11
async fn an_orchestration_that_was_put_away_goes_on(store: TestStore) {
    let engine = store.builder().orchestrations_cached(1).open().await.unwrap();
    engine.orchestrate(|work: Work, context: OrchestrationContext| async move {
        let sent = context.event::<u32>("go")?.await?;
        Ok(format!("{}", work.0 + sent))
    });
    let tasks = [start(&engine).await, start(&engine).await, start(&engine).await];
    engine.run_until_idle().await.unwrap();
    for task in tasks {
        engine.signal(task, "go", &1).await.unwrap();
    }
    for task in tasks {
        assert_eq!(finish(&engine, task).await.unwrap(), "8");
    }
}
