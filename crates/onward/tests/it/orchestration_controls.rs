//! Pauses of orchestrations, signals before their start, code by name, checks by a program, and
//! metrics of turns.

use std::process::ExitCode;
use std::time::Duration;

use onward::orchestration::{OrchestrationContext, OrchestrationOptions, check_files};
use onward::task::WaitReason;
use onward::{Backoff, Context, Engine, Failure, RetryPolicy, TaskFilter, TaskState};
use serde_json::{Value, json};

use crate::fixture::{HOUR, SECOND, TestStore, error, record, state};
use crate::measured::Recorded;
use crate::orchestration_clients::Lines;
use crate::orchestrations::{Double, Part, Work, engine, finish, start};

on_every_store! {
    a_program_checks_histories_in_files,
    a_paused_orchestration_goes_on_where_it_was_when_it_is_resumed,
    a_timer_fires_after_the_pause_in_which_it_came_due,
    an_orchestration_says_which_events_it_waits_for,
    what_was_sent_before_the_start_is_there_in_the_first_turn,
    code_is_known_by_name_with_json_in_and_out,
    an_activity_goes_on_where_its_last_attempt_was,
    turns_replays_and_histories_are_counted,
    an_orchestration_without_code_is_logged_and_counted,
    a_killed_orchestration_is_not_said_to_have_never_run,
}

async fn a_killed_orchestration_is_not_said_to_have_never_run(store: TestStore) {
    let engine = engine(&store, |_, context| async move { context.event::<String>("word")?.await }).await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.kill(task).await.unwrap();
    assert_eq!(error(&store, task).await, "killed on request");
}

/// Shows: D8
async fn a_paused_orchestration_goes_on_where_it_was_when_it_is_resumed(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let doubled = context.activity(Double(4)).await?;
        let word = context.event::<String>("word")?.await?;
        Ok(format!("{word} {doubled}"))
    })
    .await;
    let task = start(&engine).await;
    engine.pause_orchestration(task).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Blocked);
    assert_eq!(engine.why(task).await.unwrap()[0], WaitReason::OrchestrationPaused { task });
    assert!(engine.orchestration_status(task).await.unwrap().is_paused());

    engine.resume_orchestration(task).await.unwrap();
    engine.run_until_idle().await.unwrap();
    engine.pause_orchestrations(TaskFilter::default()).await.unwrap();
    engine.signal(task, "word", &"eight").await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Blocked);

    let other = another(&store).await;
    assert_eq!(other.resume_orchestrations(TaskFilter::default()).await.unwrap().tasks, 1);
    assert_eq!(finish(&engine, task).await.unwrap(), "eight 8");
}

async fn another(store: &TestStore) -> Engine {
    store.engine().await
}

/// Shows: D8
async fn a_timer_fires_after_the_pause_in_which_it_came_due(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.timer(HOUR).await;
        Ok("an hour".to_owned())
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.pause_orchestration(task).await.unwrap();
    store.clock.advance(HOUR * 2);
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Blocked);
    engine.resume_orchestration(task).await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "an hour");
}

/// Shows: B6, D10
async fn an_orchestration_says_which_events_it_waits_for(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let (word, number) = (context.event::<String>("word")?, context.event::<u32>("number")?);
        let until = context.timer(HOUR);
        let word = word.await?;
        drop(until);
        Ok(format!("{word} {}", number.await?))
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    let names = |names: &[&str]| names.iter().map(|name| onward::Name::new(name).unwrap()).collect::<Vec<_>>();
    let until = Some(record(&store, task).await.run_at);
    let parked = WaitReason::Parked { until, events: names(&["number", "word"]), tasks: Vec::new() };
    assert_eq!(engine.why(task).await.unwrap()[0], parked);
    engine.signal(task, "word", &"seven").await.unwrap();
    engine.run_until_idle().await.unwrap();
    let parked = WaitReason::Parked { until: None, events: names(&["number"]), tasks: Vec::new() };
    assert_eq!(engine.why(task).await.unwrap()[0], parked);
}

/// Shows: D3
async fn what_was_sent_before_the_start_is_there_in_the_first_turn(store: TestStore) {
    let engine = engine(&store, |_, _| async { Ok(String::new()) }).await;
    engine.orchestrate(|_: Part, context: OrchestrationContext| async move {
        let words = context.queue::<String>("word")?;
        Ok(format!("{} {}", words.next().await?, words.next().await?))
    });
    engine.signal_or_keep(("part", "a"), HOUR, "word", &"good").await.unwrap();
    engine.run_until_idle().await.unwrap();
    let part = engine.signal_or_start(Part("a".into()), "word", &"night").await.unwrap();
    assert_eq!(finish(&engine, part.id()).await.unwrap(), "good night");
}

/// Shows: D1
async fn code_is_known_by_name_with_json_in_and_out(store: TestStore) {
    let engine = store.engine().await;
    engine.handle_json("double", |number: Value, _| async move { Ok(json!(number.as_u64().unwrap_or(0) * 2)) });
    engine.orchestrate_json("sum", OrchestrationOptions::new(), |numbers: Value, context| async move {
        let mut sum = 0;
        for number in numbers.as_array().into_iter().flatten() {
            sum += context.activity_by_name("double", number).await?.as_u64().unwrap_or(0);
        }
        Ok(json!({ "sum": sum }))
    });
    engine.orchestrate_json("outer", OrchestrationOptions::new(), |payload: Value, context| async move {
        assert_eq!(payload, Value::Null);
        Ok(context.orchestration_by_name("sum", &json!([1, 2])).await?)
    });
    let outer = engine.start_json("outer", Some("one"), &Value::Null).await.unwrap();
    assert_eq!(engine.start_json("outer", Some("one"), &Value::Null).await.unwrap().id(), outer.id());
    engine.run_until_idle().await.unwrap();
    assert_eq!(outer.wait().await.unwrap(), json!({ "sum": 6 }));
}

/// Shows: D5
async fn a_program_checks_histories_in_files(store: TestStore) {
    let directory = tempfile::tempdir().unwrap();
    let code = |context: OrchestrationContext| async move { Ok(context.activity(Double(7)).await?.to_string()) };
    let engine = engine(&store, move |_, context| code(context)).await;
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap();
    let file = directory.path().join("work-1.cbor");
    std::fs::write(&file, engine.record_history(task).await.unwrap().to_bytes().unwrap()).unwrap();

    let same = |engine: &Engine| {
        engine.orchestrate(move |_: Work, context| code(context));
    };
    let other = |engine: &Engine| {
        engine.orchestrate(|_: Work, _| async { Ok(String::new()) });
    };
    assert_eq!(check_files([file.clone()], same).await, ExitCode::SUCCESS);
    assert_eq!(check_files([file.clone()], other).await, ExitCode::from(1));
    let missing = directory.path().join("missing.cbor");
    assert_eq!(check_files([file, missing], same).await, ExitCode::from(2));
    assert_eq!(check_files([], same).await, ExitCode::from(2));
}

/// Shows: D2
async fn an_activity_goes_on_where_its_last_attempt_was(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let copied = context.activity_by_name("copy", &Value::Null).retry(at_once()).await?;
        Ok(copied.to_string())
    })
    .await;
    engine.handle_json("copy", |_, context: Context| async move {
        let done = context.last_checkpoint::<Vec<u32>>()?.unwrap_or_default();
        let done: Vec<u32> = done.into_iter().chain([context.attempt()]).collect();
        context.checkpoint(&done).await?;
        if done.len() < 3 { Err(Failure::retryable("it stops half-way")) } else { Ok(json!(done)) }
    });
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "[1,2,3]");
}

fn at_once() -> RetryPolicy {
    RetryPolicy { attempts: 5, backoff: Backoff::Constant { delay: Duration::ZERO } }
}

/// Shows: D10
async fn turns_replays_and_histories_are_counted(store: TestStore) {
    let recorded = Recorded::default();
    let _installed = metrics::set_default_local_recorder(&recorded);
    let code = |_, context: OrchestrationContext| async move {
        context.timer(SECOND).await;
        context.timer(SECOND).await;
        Ok(String::new())
    };
    let first = engine(&store, code).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    store.clock.advance(SECOND);
    let second = engine(&store, code).await;
    second.run_until_idle().await.unwrap();
    assert!(recorded.value("onward_replayed_events_total kind=work") >= 2.0);
    store.clock.advance(SECOND);
    finish(&second, task).await.unwrap();

    let turns = |outcome: &str| recorded.value(&format!("onward_turns_total kind=work outcome={outcome}"));
    assert_eq!((turns("parked"), turns("completed"), turns("dead")), (2.0, 1.0, 0.0));
    assert_eq!(recorded.value("onward_turn_seconds kind=work"), 3.0);
    let events = first.orchestration_history(task).await.unwrap().len();
    assert_eq!(recorded.value("onward_history_events_total kind=work"), f64::from(u32::try_from(events).unwrap()));
    assert!(recorded.value("onward_history_bytes_total kind=work") > 0.0);
    assert!(recorded.value("onward_replays_total kind=work") >= 1.0);
}

/// Shows: D9
async fn an_orchestration_without_code_is_logged_and_counted(store: TestStore) {
    let recorded = Recorded::default();
    let _installed = metrics::set_default_local_recorder(&recorded);
    let lines = Lines::default();
    let reported = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || reported.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let code = |_: Work, context: OrchestrationContext| async move { context.event::<String>("word")?.await };
    let version = |version| OrchestrationOptions::new().version(version);
    let first = store.engine().await;
    first.orchestrate_with(version(1), code);
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    first.signal(task, "word", &"on").await.unwrap();
    let without = store.engine().await;
    without.orchestrate_with(version(2), code);
    without.run_until_idle().await.unwrap();
    assert_eq!(recorded.value("onward_turns_total kind=work outcome=given_back"), 1.0);
    let said = lines.text();
    assert!(
        said.contains("no code for orchestrations of kind `work` that version 1 began")
            && said.contains(&format!("task={task}")),
        "{said}"
    );
}
