//! Operations of programs on orchestrations from outside, and the queries and updates of
//! orchestrations, on every store.

use onward_store::StoreReads;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward::orchestration::{
    CheckFailure, HistoryEvent, OrchestrationContext, OrchestrationOptions, OrchestrationStatus, Query,
    RecordedHistory, UpdateCall, check_files,
};
use onward::task::{OnDuplicate, UniqueKey};
use onward::{Engine, Failure, NewTask, TaskId, TaskState};
use serde::{Deserialize, Serialize};

use crate::fixture::{SECOND, TestStore, error, record, start as start_run, state, stop};
use crate::orchestrations::{Double, Part, Work, engine, finish, start};

on_every_store! {
    a_query_is_answered_from_a_recorded_history_by_a_program_that_has_the_code,
    a_queue_of_events_gives_one_after_the_other,
    an_activity_has_a_time_for_all_its_attempts,
    a_task_that_is_not_claimed_within_its_time_to_live_expires,
    an_orchestration_that_is_awaited_has_a_time_for_all_that_it_does,
    what_is_about_attempts_is_refused_for_an_orchestration,
    a_signal_starts_what_is_not_there,
    a_signal_starts_nothing_that_has_no_key,
    a_terminated_orchestration_receives_nothing,
    a_line_that_the_code_logs_is_logged_once,
    a_recorded_history_is_checked_against_new_code,
    a_history_is_not_checked_without_code,
    an_update_is_answered_by_the_code,
    a_declared_update_and_query_have_their_types_on_both_sides,
    a_waiter_for_a_status_is_notified_whichever_engine_publishes_it,
    a_waiter_for_a_status_that_never_comes_is_notified_of_the_end,
    an_update_of_an_ended_orchestration_is_an_error_that_says_so,
    an_update_that_no_code_takes_is_over_in_time_and_names_those_that_are_taken,
    an_update_waits_for_its_timeout,
    an_update_of_what_is_paused_says_so,
    a_query_is_answered_from_the_history_also_after_the_end,
    a_query_that_the_code_does_not_know_is_refused_with_those_that_it_does,
    a_status_that_is_too_large_is_an_error_in_the_code,
    a_history_that_grows_too_long_is_a_dead_letter_that_goes_on_under_a_higher_limit,
    a_fork_goes_on_from_the_midst_of_a_history,
    what_was_under_way_is_submitted_again_by_a_fork,
    a_reset_takes_the_place_of_what_it_began_with,
    a_reset_takes_over_a_key_that_is_kept_after_the_end,
    a_history_is_cut_only_between_two_arrivals,
    an_orchestration_keeps_the_version_that_began_it,
    an_orchestration_of_another_version_is_left_to_those_that_have_it,
    a_version_goes_on_with_earlier_ones_where_it_says_so,
    what_continues_as_new_goes_on_with_the_newest_version,
    the_details_of_a_failure_reach_the_code_and_the_waiters,
    what_had_continued_as_new_is_forked_and_taken_over,
}

/// Shows: D3
async fn a_queue_of_events_gives_one_after_the_other(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let words = context.queue::<String>("word")?;
        Ok(format!("{} {}", words.next().await?, words.next().await?))
    })
    .await;
    let task = start(&engine).await;
    engine.signal(task, "word", &"good").await.unwrap();
    engine.run_until_idle().await.unwrap();
    engine.signal(task, "word", &"night").await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "good night");
}

/// Shows: D2
async fn an_activity_has_a_time_for_all_its_attempts(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let never = context.activity_task::<()>(NewTask::new("fails")?);
        let policy = onward::RetryPolicy {
            attempts: 100,
            backoff: onward::Backoff::Constant { delay: Duration::from_secs(40) },
        };
        let failed = never.retry(policy).overall_timeout(Duration::from_secs(60)).await.unwrap_err();
        Ok(failed.to_string())
    })
    .await;
    engine.handle("fails", |_| async { Err::<(), _>(Failure::retryable("not now")) });
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    store.clock.advance(Duration::from_secs(40));
    let said = finish(&engine, task).await.unwrap();
    assert!(said.contains("fails") && said.contains("not now"), "{said}");
}

/// Shows: D2
async fn a_task_that_is_not_claimed_within_its_time_to_live_expires(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let never = context.activity_task::<()>(NewTask::new("nobody-does-this")?);
        Ok(never.overall_timeout(Duration::from_secs(60)).await.unwrap_err().to_string())
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    store.clock.advance(Duration::from_secs(60));
    let said = finish(&engine, task).await.unwrap();
    assert!(said.contains("expired") && said.contains("nobody-does-this"), "{said}");
    assert_eq!(state(&store, TaskId(task.0 + 1)).await, TaskState::Expired);
}

/// Shows: D4
async fn an_orchestration_that_is_awaited_has_a_time_for_all_that_it_does(store: TestStore) {
    let engine = engine(&store, |work: Work, context| async move {
        if work.0 == 8 {
            context.event::<()>("never")?.await?;
        }
        let child = context.orchestration(Work(8)).overall_timeout(Duration::from_secs(60));
        Ok(child.await.unwrap_err().to_string())
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    store.clock.advance(Duration::from_secs(60));
    let said = finish(&engine, task).await.unwrap();
    assert!(said.contains("expired"), "{said}");
    assert_eq!(state(&store, TaskId(task.0 + 1)).await, TaskState::Cancelled);
}

/// Shows: D4
async fn what_is_about_attempts_is_refused_for_an_orchestration(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let child = context.orchestration(Work(8)).timeout(Duration::from_secs(60));
        Ok(child.await.unwrap_err().to_string())
    })
    .await;
    let task = start(&engine).await;
    let said = finish(&engine, task).await.unwrap();
    assert!(said.contains("has a timeout for an attempt"), "{said}");
}

/// Shows: D3
async fn a_signal_starts_what_is_not_there(store: TestStore) {
    let engine = engine(&store, |_, _| async { Ok(String::new()) }).await;
    engine.orchestrate(|_: Part, context: OrchestrationContext| async move {
        let words = context.queue::<String>("word")?;
        Ok(format!("{} {}", words.next().await?, words.next().await?))
    });
    let first = engine.signal_or_start(Part("a".into()), "word", &"good").await.unwrap();
    engine.run_until_idle().await.unwrap();
    let second = engine.signal_or_start(Part("a".into()), "word", &"night").await.unwrap();
    assert_eq!(first.id(), second.id());
    assert_eq!(finish(&engine, first.id()).await.unwrap(), "good night");
}

/// Shows: D3
async fn a_signal_starts_nothing_that_has_no_key(store: TestStore) {
    let engine = engine(&store, |_, _| async { Ok(String::new()) }).await;
    let said = engine.signal_or_start(Work(1), "word", &"good").await.unwrap_err().to_string();
    assert!(said.contains("this `work` has no key"), "{said}");
    assert!(engine.cancel(TaskId(1)).await.unwrap_err().is_not_found());
}

/// Shows: D8
async fn a_terminated_orchestration_receives_nothing(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.cancelled().await;
        context.set_status(&"heard")?;
        Ok(String::new())
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.terminate(task, "the customer left").await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Cancelled);
    assert_eq!(error(&store, task).await, "the customer left");
    let status = engine.orchestration_status(task).await.unwrap();
    assert_eq!(status.status::<String>().unwrap(), None);
}

/// The lines of a log.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Shows: D10
async fn a_line_that_the_code_logs_is_logged_once(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move {
        tracing::info!("before the event");
        context.event::<()>("go")?.await?;
        tracing::info!("after it");
        Ok(context.activity(Double(1)).await?.to_string())
    };
    let lines = Lines::default();
    let reported = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || reported.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let first = engine(&store, code).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    first.signal(task, "go", &()).await.unwrap();
    finish(&engine(&store, code).await, task).await.unwrap();
    let lines = lines.text();
    assert_eq!(lines.matches("before the event").count(), 1, "{lines}");
    assert_eq!(lines.matches("after it").count(), 1, "{lines}");
}

/// Shows: D5
async fn a_recorded_history_is_checked_against_new_code(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let doubled = context.activity(Double(2)).await?;
        Ok(doubled.to_string())
    })
    .await;
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap();
    let recorded = engine.record_history(task).await.unwrap().to_bytes().unwrap();
    let recorded = RecordedHistory::from_bytes(&recorded).unwrap();
    engine.check_history(&recorded).unwrap();

    let changed = crate::orchestrations::engine(&store, |_, context: OrchestrationContext| async move {
        context.timer(Duration::from_secs(1)).await;
        Ok(String::new())
    });
    let Err(CheckFailure::Differs(difference)) = changed.await.check_history(&recorded) else { panic!("it fits") };
    assert_eq!(difference.place, 1);
    assert_eq!(difference.expected, Some(HistoryEvent::TaskSubmitted { operation: 1, kind: "double".into() }));
    assert!(matches!(difference.found, Some(HistoryEvent::TimerStarted { .. })));
}

/// Shows: D5
async fn a_history_is_not_checked_without_code(store: TestStore) {
    let engine = engine(&store, |_, _| async { Ok(String::new()) }).await;
    let task = start(&engine).await;
    finish(&engine, task).await.unwrap();
    let recorded = engine.record_history(task).await.unwrap();
    let without = store.engine().await;
    let said = without.check_history(&recorded).unwrap_err().to_string();
    assert!(said.contains("no code is registered for orchestrations of kind `work`"), "{said}");
}

/// Runs a counter that returns its sum on a query, and adds on an update.
async fn sum(_: Work, context: OrchestrationContext) -> Result<String, Failure> {
    let sum = Arc::new(Mutex::new(0_u32));
    let shared = Arc::clone(&sum);
    context.on_query("sum", move |times: u32| Ok(*shared.lock().unwrap() * times));
    let additions = context.updates::<u32>("add")?;
    loop {
        let addition = additions.next().await;
        let more = *addition.payload();
        if more == 0 {
            addition.refuse("nothing is no sum");
            continue;
        }
        let sum = {
            let mut sum = sum.lock().unwrap();
            *sum += more;
            *sum
        };
        addition.accept(&sum)?;
        if sum > 10 {
            return Ok(sum.to_string());
        }
    }
}

/// Shows: D3
async fn an_update_is_answered_by_the_code(store: TestStore) {
    let engine = engine(&store, sum).await;
    let task = start(&engine).await;
    let run = start_run(&engine);
    assert_eq!(engine.update::<_, u32>(task, "add", &3).await.unwrap(), 3);
    assert_eq!(engine.update::<_, u32>(task, "add", &4).await.unwrap(), 7);
    let refused = engine.update::<_, u32>(task, "add", &0).await.unwrap_err().to_string();
    assert!(refused.contains("nothing is no sum"), "{refused}");
    let unreadable = engine.update::<_, u32>(task, "add", &"four").await.unwrap_err().to_string();
    assert!(unreadable.contains("does not match the type"), "{unreadable}");
    stop(&engine, run).await;
}

const ADD: UpdateCall<u32, u64> = UpdateCall::new("add");
const SUM: Query<u32, u64> = Query::new("sum");
const UNNAMED: UpdateCall<(), ()> = UpdateCall::new("un\u{200b}named");

/// Shows: D3
async fn a_declared_update_and_query_have_their_types_on_both_sides(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        assert!(UNNAMED.queue(&context).is_err());
        let sum = Arc::new(Mutex::new(0_u64));
        let shared = Arc::clone(&sum);
        SUM.answer(&context, move |times| Ok(*shared.lock().unwrap() * u64::from(times)));
        let additions = ADD.queue(&context)?;
        for _ in 0..2 {
            let addition = additions.next().await;
            let added = *sum.lock().unwrap() + u64::from(*addition.payload());
            *sum.lock().unwrap() = added;
            addition.accept(&added)?;
        }
        Ok(String::new())
    })
    .await;
    let task = start(&engine).await;
    let run = start_run(&engine);
    assert_eq!(ADD.send(&engine, task, &3).await.unwrap(), 3);
    assert_eq!(SUM.ask(&engine, task, &2).await.unwrap(), 6);
    assert_eq!(ADD.send_within(&engine, task, &4, crate::fixture::HOUR).await.unwrap(), 7);
    stop(&engine, run).await;
    let history = engine.record_history(task).await.unwrap();
    assert_eq!(SUM.ask_history(&engine, &history, &1).unwrap(), 7);
    assert!(UNNAMED.send(&engine, task, &()).await.unwrap_err().is_invalid());
}

/// Shows: D6
async fn a_waiter_for_a_status_is_notified_whichever_engine_publishes_it(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.set_status(&"begun")?;
        context.event::<()>("go")?.await?;
        context.set_status(&"paid")?;
        context.event::<()>("never")?.await?;
        Ok(String::new())
    })
    .await;
    let task = start(&engine).await;
    let run = start_run(&engine);
    let says = |word: &'static str| {
        move |shown: &OrchestrationStatus| shown.status::<String>().unwrap().as_deref() == Some(word)
    };
    engine.wait_for_status(task, says("begun")).await.unwrap();
    let other = store.engine().await;
    let waiting = tokio::spawn(async move { other.wait_for_status(task, says("paid")).await });
    engine.signal(task, "go", &()).await.unwrap();
    let shown = waiting.await.unwrap().unwrap();
    assert_eq!(shown.status::<String>().unwrap().as_deref(), Some("paid"));
    stop(&engine, run).await;
}

/// Shows: D6
async fn a_waiter_for_a_status_that_never_comes_is_notified_of_the_end(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.set_status(&"begun")?;
        Ok(String::new())
    })
    .await;
    let task = start(&engine).await;
    let run = start_run(&engine);
    let refused = engine.wait_for_status(task, |_| false).await.unwrap_err();
    assert!(refused.is_already_ended(), "{refused}");
    assert!(engine.wait_for_status(TaskId(99), |_| true).await.unwrap_err().is_not_found());
    stop(&engine, run).await;
}

/// Shows: D3
async fn an_update_of_an_ended_orchestration_is_an_error_that_says_so(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        context.event::<()>("go")?.await?;
        Ok(String::new())
    })
    .await;
    let task = start(&engine).await;
    engine.signal(task, "go", &()).await.unwrap();
    let run = start_run(&engine);
    let refused = engine.update::<_, u32>(task, "add", &1).await.unwrap_err();
    assert!(refused.is_already_ended(), "{refused}");
    stop(&engine, run).await;
}

/// Returns the error of an update without a reply when its time is over.
async fn unanswered(store: &TestStore, engine: &Engine, task: TaskId, within: Option<Duration>) -> onward::Error {
    let asking = engine.clone();
    let asked = tokio::spawn(async move {
        match within {
            None => asking.update::<_, u32>(task, "subtract", &1).await,
            Some(within) => asking.update_within::<_, u32>(task, "subtract", &1, within).await,
        }
    });
    store.settled().await;
    let patience = within.unwrap_or(onward::bounds::UPDATE_TIMEOUT);
    store.advance(patience - SECOND).await;
    assert!(!asked.is_finished(), "it did not wait");
    store.advance(SECOND).await;
    asked.await.unwrap().unwrap_err()
}

/// Shows: D3
async fn an_update_that_no_code_takes_is_over_in_time_and_names_those_that_are_taken(store: TestStore) {
    let engine = engine(&store, sum).await;
    let task = start(&engine).await;
    let run = start_run(&engine);
    let reported = unanswered(&store, &engine, task, None).await;
    assert!(reported.is_unanswered(), "{reported}");
    let reported = reported.to_string();
    assert!(
        reported.contains("the update `subtract` within 30s") && reported.contains("waits for the updates `add`"),
        "{reported}"
    );
    stop(&engine, run).await;
}

/// Shows: D3
async fn an_update_waits_for_its_timeout(store: TestStore) {
    let engine = engine(&store, sum).await;
    let task = start(&engine).await;
    let reported = unanswered(&store, &engine, task, Some(SECOND * 90)).await.to_string();
    assert!(reported.contains("within 90s: its code waits for no update"), "{reported}");
}

/// Shows: D3, D8
async fn an_update_of_what_is_paused_says_so(store: TestStore) {
    let engine = engine(&store, sum).await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.pause_orchestration(task).await.unwrap();
    let reported = unanswered(&store, &engine, task, None).await.to_string();
    assert!(reported.contains("within 30s: it is paused"), "{reported}");
}

/// Shows: D3
async fn a_query_is_answered_from_the_history_also_after_the_end(store: TestStore) {
    let engine = engine(&store, sum).await;
    let task = start(&engine).await;
    let run = start_run(&engine);
    engine.update::<_, u32>(task, "add", &4).await.unwrap();
    let asking = crate::orchestrations::engine(&store, sum).await;
    assert_eq!(asking.query::<_, u32>(task, "sum", &10).await.unwrap(), 40);
    engine.update::<_, u32>(task, "add", &8).await.unwrap();
    engine.wait(task).await.unwrap();
    assert_eq!(asking.query::<_, u32>(task, "sum", &1).await.unwrap(), 12);
    stop(&engine, run).await;
}

/// Shows: D3
async fn a_query_that_the_code_does_not_know_is_refused_with_those_that_it_does(store: TestStore) {
    let engine = engine(&store, sum).await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    let said = engine.query::<_, u32>(task, "total", &1).await.unwrap_err().to_string();
    assert!(said.contains("no query `total`") && said.contains("sum"), "{said}");
}

/// Shows: D3
async fn a_query_is_answered_from_a_recorded_history_by_a_program_that_has_the_code(store: TestStore) {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&store, sum).await;
    let task = start(&engine).await;
    let run = start_run(&engine);
    engine.update::<_, u32>(task, "add", &4).await.unwrap();
    stop(&engine, run).await;
    let recorded = engine.record_history(task).await.unwrap();
    assert_eq!(engine.query_history::<_, u32>(&recorded, "sum", &10).unwrap(), 40);

    let file = directory.path().join("work.cbor");
    std::fs::write(&file, recorded.to_bytes().unwrap()).unwrap();
    let asked = async |name: &str, question: &str| {
        let words = ["--query".as_ref(), name.as_ref(), question.as_ref(), file.as_path()];
        let register = |engine: &Engine| {
            engine.orchestrate(sum);
        };
        check_files(words.map(std::path::Path::to_owned), register).await
    };
    assert_eq!(asked("sum", "10").await, ExitCode::SUCCESS);
    assert_eq!(asked("total", "10").await, ExitCode::from(1));
    assert_eq!(asked("sum", "ten").await, ExitCode::from(2));
}

/// Shows: D9
async fn a_status_that_is_too_large_is_an_error_in_the_code(store: TestStore) {
    let limit = store.info().payload_limit;
    let engine = engine(&store, move |_, context| async move {
        let value = context.set_value("large", &"x".repeat(limit)).unwrap_err();
        let key = context.set_value("", &1).unwrap_err();
        Ok(format!("{value}; {key}"))
    })
    .await;
    let task = start(&engine).await;
    let said = finish(&engine, task).await.unwrap();
    assert!(said.contains("value") && said.contains("the key of a value has from 1 to 512 bytes"), "{said}");
}

/// Shows: D9
async fn a_history_that_grows_too_long_is_a_dead_letter_that_goes_on_under_a_higher_limit(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move {
        let mut sum = 0;
        for number in 0..10_u32 {
            sum += context.step("number", move || async move { Ok(number) }).await?;
        }
        Ok(sum.to_string())
    };
    let narrow = store.builder().history_events(8).open().await.unwrap();
    narrow.orchestrate(code);
    let task = start(&narrow).await;
    narrow.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Dead);
    let said = error(&store, task).await;
    assert!(said.contains("may have 8") && said.contains("continue as new"), "{said}");
    let wide = engine(&store, code).await;
    wide.retry(task).await.unwrap();
    assert_eq!(finish(&wide, task).await.unwrap(), "45");
}

/// Doubles a number, awaits an event, and adds both. A slow activity runs at the same time.
async fn double_then_add(work: Work, context: OrchestrationContext) -> Result<String, Failure> {
    let doubled = context.activity(Double(work.0)).await?;
    let beside = context.activity_task::<u32>(NewTask::new("slow")?).start();
    let sent = context.event::<u32>("add")?.await?;
    Ok(format!("{} {}", doubled + sent, beside.await?))
}

/// Shows: D8
async fn a_fork_goes_on_from_the_midst_of_a_history(store: TestStore) {
    let first = engine(&store, double_then_add).await;
    first.handle("slow", |_| async { Ok::<_, Failure>("5") });
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    first.signal(task, "add", &100).await.unwrap();
    assert_eq!(finish(&first, task).await.unwrap(), "114 5");
    let history = first.orchestration_history(task).await.unwrap();
    let before = history.iter().position(|event| matches!(event, HistoryEvent::SignalReceived { .. })).unwrap();

    let fork = first.fork(task, before as u64).await.unwrap();
    first.signal(fork, "add", &200).await.unwrap();
    assert_eq!(finish(&first, fork).await.unwrap(), "214 5");
    first.check_history(&first.record_history(fork).await.unwrap()).unwrap();
}

/// Shows: D8
async fn what_was_under_way_is_submitted_again_by_a_fork(store: TestStore) {
    let first = engine(&store, double_then_add).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    let length = first.orchestration_history(task).await.unwrap().len();
    let fork = first.fork(task, length as u64).await.unwrap();
    first.run_until_idle().await.unwrap();
    let children = onward::TaskFilter { parent: Some(fork), ..onward::TaskFilter::default() };
    assert_eq!(first.store().count(children).await.unwrap(), 1, "the slow one, and not what had ended");
    let second = engine(&store, double_then_add).await;
    second.handle("slow", |_| async { Ok::<_, Failure>("6") });
    second.signal(fork, "add", &1).await.unwrap();
    assert_eq!(finish(&second, fork).await.unwrap(), "15 6");
}

/// Shows: D8
async fn a_reset_takes_the_place_of_what_it_began_with(store: TestStore) {
    let engine = engine(&store, |_, _| async { Ok(String::new()) }).await;
    engine.orchestrate(|_: Part, context: OrchestrationContext| async move {
        let words = context.queue::<String>("word")?;
        Ok(format!("{} {}", words.next().await?, words.next().await?))
    });
    let task = engine.submit(Part("a".into())).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    engine.signal(task, "word", &"bad").await.unwrap();
    engine.run_until_idle().await.unwrap();
    let again = engine.reset(task, 1, "the word was wrong").await.unwrap();
    assert_eq!(error(&store, task).await, "the word was wrong");
    engine.signal_key("part", "a", "word", &"good").await.unwrap();
    engine.signal_key("part", "a", "word", &"night").await.unwrap();
    assert_eq!(finish(&engine, again).await.unwrap(), "good night");
}

/// Shows: D8
async fn a_reset_takes_over_a_key_that_is_kept_after_the_end(store: TestStore) {
    let engine = engine(&store, |_, _| async { Ok(String::new()) }).await;
    engine.orchestrate(|_: Part, context: OrchestrationContext| async move {
        context.queue::<String>("word")?.next().await
    });
    let unique = UniqueKey { key: "a".into(), on_duplicate: OnDuplicate::Reject, keep_for: Duration::from_secs(3600) };
    let payload = serde_json::to_vec("a").unwrap().into();
    let part = NewTask { unique: Some(unique), orchestration: true, payload, ..NewTask::new("part").unwrap() };
    let first = engine.submit_task(part).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    let second = engine.reset(first, 1, "it went wrong").await.unwrap();
    assert_eq!(state(&store, first).await, TaskState::Cancelled);
    engine.signal(second, "word", &"done").await.unwrap();
    assert_eq!(finish(&engine, second).await.unwrap(), "done");

    let third = engine.reset(second, 1, "once more").await.unwrap();
    let said = engine.reset(first, 1, "too late").await.unwrap_err().to_string();
    assert!(said.contains(&format!("orchestration {third} has taken the key")), "{said}");
}

/// Shows: D8
async fn a_history_is_cut_only_between_two_arrivals(store: TestStore) {
    let engine = engine(&store, double_then_add).await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    let said = engine.fork(task, 1).await.unwrap_err().to_string();
    assert!(said.contains("cannot be cut behind event 1") && said.contains("cut it behind event 2"), "{said}");
    let said = engine.fork(task, 99).await.unwrap_err().to_string();
    assert!(said.contains("copy from 1 to"), "{said}");
}

/// Returns code that reports its version before and after an event.
fn saying(
    version: u32,
) -> impl Fn(Work, OrchestrationContext) -> futures_util::future::BoxFuture<'static, Result<String, Failure>> {
    move |_, context| {
        Box::pin(async move {
            for _ in 0..version {
                context.step("version", move || async move { Ok(version) }).await?;
            }
            context.event::<()>("go")?.await?;
            Ok(version.to_string())
        })
    }
}

/// Opens an engine with several versions of the code of one kind.
async fn versions(store: &TestStore, versions: &[u32]) -> Engine {
    let engine = store.engine().await;
    for version in versions {
        engine.orchestrate_with(OrchestrationOptions::new().version(*version), saying(*version));
    }
    engine
}

/// Shows: D5
async fn an_orchestration_keeps_the_version_that_began_it(store: TestStore) {
    let old = versions(&store, &[1]).await;
    let first = start(&old).await;
    old.run_until_idle().await.unwrap();
    let both = versions(&store, &[1, 2]).await;
    let second = start(&both).await;
    for task in [first, second] {
        both.signal(task, "go", &()).await.unwrap();
    }
    assert_eq!(finish(&both, first).await.unwrap(), "1");
    assert_eq!(finish(&both, second).await.unwrap(), "2");
}

/// Shows: D9
async fn an_orchestration_of_another_version_is_left_to_those_that_have_it(store: TestStore) {
    let new = versions(&store, &[2]).await;
    let task = start(&new).await;
    new.run_until_idle().await.unwrap();
    new.signal(task, "go", &()).await.unwrap();
    let old = versions(&store, &[1]).await;
    old.run_until_idle().await.unwrap();
    assert_eq!((state(&store, task).await, record(&store, task).await.attempts), (TaskState::Scheduled, 0));
    store.clock.advance(onward::bounds::UNKNOWN_CODE_PAUSE);
    assert_eq!(finish(&new, task).await.unwrap(), "2");
}

/// Shows: D5
async fn a_version_goes_on_with_earlier_ones_where_it_says_so(store: TestStore) {
    let old = versions(&store, &[1]).await;
    let task = start(&old).await;
    old.run_until_idle().await.unwrap();
    old.signal(task, "go", &()).await.unwrap();
    let new = store.engine().await;
    new.orchestrate_with(
        OrchestrationOptions::new().version(3).since(1),
        |work: Work, context: OrchestrationContext| async move {
            let said = saying(1)(work, context).await?;
            Ok(format!("{said}, and 3"))
        },
    );
    assert_eq!(finish(&new, task).await.unwrap(), "1, and 3");
}

/// Shows: D5
async fn what_continues_as_new_goes_on_with_the_newest_version(store: TestStore) {
    let says = |version: u32| {
        move |work: Work, context: OrchestrationContext| async move {
            if work.0 == 7 {
                context.event::<()>("go")?.await?;
                return Err(context.continue_as_new(&Work(8)));
            }
            Ok(version.to_string())
        }
    };
    let old = engine(&store, says(0)).await;
    let task = start(&old).await;
    old.run_until_idle().await.unwrap();
    let both = engine(&store, says(0)).await;
    both.orchestrate_with(OrchestrationOptions::new().version(1), says(1));
    both.signal(task, "go", &()).await.unwrap();
    assert_eq!(finish(&both, task).await.unwrap(), "1");
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
enum Declined {
    Stolen { card: u32 },
}

/// Shows: D9
async fn the_details_of_a_failure_reach_the_code_and_the_waiters(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let failed = context.activity_task::<()>(NewTask::new("charge")?).await.unwrap_err();
        context.set_status(&failed.details::<Declined>())?;
        Err(failed.into())
    })
    .await;
    engine.handle("charge", |_| async {
        Err::<(), _>(Failure::permanent("declined").with_details(&Declined::Stolen { card: 7 }))
    });
    let running = engine.submit(Work(1)).await.unwrap();
    let task = running.id();
    engine.run_until_idle().await.unwrap();
    let seen = engine.orchestration_status(task).await.unwrap().status::<Declined>().unwrap();
    assert_eq!(seen, Some(Declined::Stolen { card: 7 }));
    assert_eq!(running.wait().await.unwrap_err().details(), Some(Declined::Stolen { card: 7 }));
}

/// Shows: D8
async fn what_had_continued_as_new_is_forked_and_taken_over(store: TestStore) {
    let code = |work: Work, context: OrchestrationContext| async move {
        if work.0 == 7 {
            return Err(context.continue_as_new(&Work(8)));
        }
        let doubled = context.activity(Double(work.0)).await?;
        let added = context.event::<u32>("add")?.await?;
        Ok(context.activity(Double(doubled + added)).await?.to_string())
    };
    let first = engine(&store, code).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    let length = first.orchestration_history(task).await.unwrap().len() as u64;
    let fork = first.fork(task, length).await.unwrap();
    first.run_until_idle().await.unwrap();
    first.signal(fork, "add", &4).await.unwrap();
    let second = engine(&store, code).await;
    assert_eq!(finish(&second, fork).await.unwrap(), "40");
    second.check_history(&second.record_history(fork).await.unwrap()).unwrap();
}
