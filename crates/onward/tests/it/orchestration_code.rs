//! The code of orchestrations: the operations that it may use, and its failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onward::orchestration::{Either, OrchestrationContext, OrchestrationOptions, select};
use onward::{Failure, NewTask, Task, TaskId, TaskState};
use onward_testkit::{Fault, FaultyStore, Side};
use serde::{Deserialize, Serialize};

use crate::fixture::{Gate, SECOND, TestStore, error, record, start as start_run, state, stop, submit, task as plain};
use crate::orchestrations::{Double, Work, engine, finish, start};

on_every_store! {
    the_part_of_the_code_before_its_first_await_has_random_numbers_of_its_own,
    a_step_that_has_ended_is_not_run_again_when_the_code_behind_it_was_mended,
    the_part_of_the_code_before_its_first_await_may_panic,
    names_in_the_code_have_no_character_that_is_not_seen,
    a_step_that_loses_a_select_holds_nothing_up,
    a_timer_fires_while_steps_follow_each_other,
    code_of_a_type_that_is_no_orchestration_is_an_error_of_the_run,
    a_handler_of_a_type_that_is_an_orchestration_is_an_error_of_the_run,
    a_kind_with_a_handler_and_an_orchestration_is_an_error_of_the_run,
    an_orchestration_of_a_version_that_is_not_here_is_left_alone_for_longer_each_time,
    a_plain_task_of_an_orchestration_kind_fails_with_that_reason,
    after_a_takeover_what_was_submitted_before_it_is_cancelled_behind_what_was_submitted_since,
    what_continues_as_new_with_something_untaken_goes_on_with_the_newest_code,
    what_was_claimed_ahead_and_waits_behind_a_long_step_goes_to_others,
    a_claim_that_fails_takes_no_lease_from_a_step_that_is_run,
}

/// Shows: D9
async fn names_in_the_code_have_no_character_that_is_not_seen(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let event = context.event::<()>("a\u{202e}").map(drop).unwrap_err().to_string();
        let value = context.set_value("a\u{202e}", &1).unwrap_err().to_string();
        let tag = context.set_tag("a\u{202e}", "1").unwrap_err().to_string();
        let updates = context.updates::<()>("a\u{202e}").map(drop).unwrap_err().to_string();
        let step = context.step("a\u{202e}", || async { Ok(()) }).await.unwrap_err().to_string();
        Ok([event, value, tag, updates, step].join("\n"))
    })
    .await;
    let task = start(&engine).await;
    let said = finish(&engine, task).await.unwrap();
    assert_eq!(said.lines().filter(|line| line.contains("U+202E at position")).count(), 5, "{said}");
    assert!(!said.contains('\u{202e}'), "{said:?}");
    let asked = engine.query::<_, ()>(task, "a\u{202e}", &()).await.unwrap_err();
    assert!(asked.is_invalid() && asked.to_string().contains("U+202E at position 2"), "{asked}");
}

/// Shows: D7
async fn the_part_of_the_code_before_its_first_await_has_random_numbers_of_its_own(store: TestStore) {
    let engine = engine(&store, |_, context| {
        let id = context.uuid();
        async move { Ok(id) }
    })
    .await;
    let (one, other) = (start(&engine).await, start(&engine).await);
    assert_ne!(finish(&engine, one).await.unwrap(), finish(&engine, other).await.unwrap());
}

/// Shows: D2, D9
async fn a_step_that_has_ended_is_not_run_again_when_the_code_behind_it_was_mended(store: TestStore) {
    let runs = Arc::new(AtomicU32::new(0));
    let code = |panics: bool| {
        let runs = Arc::clone(&runs);
        move |_: Work, context: OrchestrationContext| {
            let runs = Arc::clone(&runs);
            async move {
                let run = context.step("count", move || async move { Ok(runs.fetch_add(1, Ordering::SeqCst)) });
                let run = run.await?;
                assert!(!panics, "a bug");
                Ok(run.to_string())
            }
        }
    };
    let first = engine(&store, code(true)).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Dead);
    let mended = engine(&store, code(false)).await;
    mended.retry(task).await.unwrap();
    assert_eq!(finish(&mended, task).await.unwrap(), "0");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// Shows: D9
async fn the_part_of_the_code_before_its_first_await_may_panic(store: TestStore) {
    let engine = engine(&store, |work, _| {
        assert_eq!(work.0, 8, "not this one");
        async move { Ok("done".to_owned()) }
    })
    .await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Dead);
    assert!(error(&store, task).await.contains("not this one"));
}

/// Shows: D4
async fn a_step_that_loses_a_select_holds_nothing_up(store: TestStore) {
    let engine = engine(&store, |_, context| async move {
        let slow = context.step("slow", std::future::pending::<Result<u32, Failure>>);
        let fast = context.step("fast", || async { Ok(4) });
        let Either::Second(fast) = select(slow, fast).await else { return Ok("slow".to_owned()) };
        Ok(context.activity(Double(fast?)).await?.to_string())
    })
    .await;
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "8");
}

/// Shows: D2
async fn a_timer_fires_while_steps_follow_each_other(store: TestStore) {
    let clock = Arc::clone(&store.clock);
    let engine = engine(&store, move |_, context| {
        let clock = Arc::clone(&clock);
        async move {
            let timer = context.timer(Duration::from_secs(3));
            let polling = async {
                loop {
                    let clock = Arc::clone(&clock);
                    let step = context.step("poll", move || async move {
                        clock.advance(SECOND);
                        Ok(())
                    });
                    step.await?;
                }
            };
            match select(timer, polling).await {
                Either::First(()) => Ok("timed out".to_owned()),
                Either::Second(over) => over,
            }
        }
    })
    .await;
    let task = start(&engine).await;
    assert_eq!(finish(&engine, task).await.unwrap(), "timed out");
}

#[derive(Serialize, Deserialize)]
struct Forgetful;

impl Task for Forgetful {
    const KIND: &'static str = "forgetful";
    type Output = ();
}

/// Shows: D1
async fn code_of_a_type_that_is_no_orchestration_is_an_error_of_the_run(store: TestStore) {
    let engine = store.engine().await;
    engine.orchestrate(|_: Forgetful, _| async { Ok(()) });
    let reported = engine.run_until_idle().await.unwrap_err().to_string();
    assert!(reported.contains("`forgetful`") && reported.contains("ORCHESTRATION = true"), "{reported}");
}

/// Shows: D9
async fn a_handler_of_a_type_that_is_an_orchestration_is_an_error_of_the_run(store: TestStore) {
    let engine = store.engine().await;
    engine.register(|_: Work, _| async { Ok(String::new()) });
    let reported = engine.run_until_idle().await.unwrap_err().to_string();
    assert!(
        reported.contains("the kind `work`") && reported.contains("register its code with `orchestrate`"),
        "{reported}"
    );
}

/// Shows: D9
async fn a_kind_with_a_handler_and_an_orchestration_is_an_error_of_the_run(store: TestStore) {
    let engine = engine(&store, |_, _| async { Ok(String::new()) }).await;
    engine.handle("work", |_| async { Ok::<_, Failure>(()) });
    let reported = engine.run_until_idle().await.unwrap_err().to_string();
    assert!(reported.contains("the kind `work` has the code of an orchestration and a handler"), "{reported}");
}

/// Shows: D9
async fn an_orchestration_of_a_version_that_is_not_here_is_left_alone_for_longer_each_time(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move { context.event::<String>("go")?.await };
    let first = store.engine().await;
    first.orchestrate_with(OrchestrationOptions::new().version(1), code);
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    first.signal(task, "go", &"on").await.unwrap();
    let other = store.engine().await;
    other.orchestrate_with(OrchestrationOptions::new().version(2), code);
    let run = start_run(&other);
    let mut dates = std::collections::BTreeSet::new();
    for _ in 0..400 {
        store.settled().await;
        dates.insert(record(&store, task).await.run_at);
        store.clock.advance(SECOND);
    }
    stop(&other, run).await;
    // There were six pauses that double, and pauses of a minute, but no claim for each of the 400
    // seconds.
    assert!((8..16).contains(&dates.len()), "it was claimed {} times", dates.len());
}

/// Shows: D9
async fn a_plain_task_of_an_orchestration_kind_fails_with_that_reason(store: TestStore) {
    let engine = engine(&store, |_, _| async { Ok("played".to_owned()) }).await;
    let task = submit(&engine, "work").await;
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Failed);
    let reported = error(&store, task).await;
    assert!(reported.contains("submit it as an orchestration"), "{reported}");
}

/// Shows: D4
async fn after_a_takeover_what_was_submitted_before_it_is_cancelled_behind_what_was_submitted_since(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move {
        let before = context.activity_task::<()>(NewTask::new("nobody-does-this")?).start();
        context.event::<()>("go")?.await?;
        drop(context.activity_task::<()>(NewTask::new("nobody-does-this")?).start());
        let since = context.activity_task::<()>(NewTask::new("nobody-does-this")?).start();
        context.event::<()>("drop")?.await?;
        drop(since);
        context.event::<()>("drop")?.await?;
        drop(before);
        context.event::<()>("end")?.await?;
        Ok(String::new())
    };
    let first = engine(&store, code).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    let second = engine(&store, code).await;
    for name in ["go", "drop", "drop"] {
        second.signal(task, name, &()).await.unwrap();
        second.run_until_idle().await.unwrap();
    }
    assert_eq!(state(&store, TaskId(task.0 + 1)).await, TaskState::Cancelled);
}

/// Shows: D5
async fn what_continues_as_new_with_something_untaken_goes_on_with_the_newest_code(store: TestStore) {
    let engine = store.engine().await;
    let options = OrchestrationOptions::new().version(2);
    engine.orchestrate_with(options, |work: Work, context: OrchestrationContext| async move {
        if work.0 == 7 {
            context.event::<()>("go")?.await?;
            return Err(context.continue_as_new(&Work(8)));
        }
        context.event::<()>("kept")?.await?;
        Ok("over".to_owned())
    });
    let task = start(&engine).await;
    for name in ["kept", "go"] {
        engine.signal(task, name, &()).await.unwrap();
    }
    assert_eq!(finish(&engine, task).await.unwrap(), "over");
}

/// Shows: D9
async fn what_was_claimed_ahead_and_waits_behind_a_long_step_goes_to_others(store: TestStore) {
    let gate = Gate::new();
    let held = gate.clone();
    let code = move |work: Work, context: OrchestrationContext| {
        let gate = held.clone();
        async move {
            if work.0 > 3 {
                let step = context.step("long", move || async move {
                    gate.pass().await;
                    Ok(())
                });
                step.await?;
            }
            Ok("over".to_owned())
        }
    };
    let one = store.builder().turns(1).open().await.unwrap();
    one.orchestrate(code.clone());
    let mut tasks = Vec::new();
    for number in 1..=6 {
        tasks.push(one.submit(Work(number)).await.unwrap().id());
    }
    let run = start_run(&one);
    gate.entered(1).await;
    one.wait(tasks[2]).await.unwrap();
    assert_eq!(state(&store, tasks[5]).await, TaskState::Running, "it waits for the slot");
    let other = store.builder().turns(4).open().await.unwrap();
    other.orchestrate(code);
    let other_run = start_run(&other);
    let entered = gate.clone();
    store.advance_until(SECOND, tokio::spawn(async move { entered.entered(2).await })).await;
    gate.open(3);
    stop(&one, run).await;
    stop(&other, other_run).await;
}

/// Shows: D9
async fn a_claim_that_fails_takes_no_lease_from_a_step_that_is_run(store: TestStore) {
    let faulty = Arc::new(FaultyStore::new(store.shared()));
    let engine = store.builder().store(faulty.clone()).open().await.unwrap();
    let (gate, runs) = (Gate::new(), Arc::new(AtomicU32::new(0)));
    let (held, counted) = (gate.clone(), Arc::clone(&runs));
    engine.handle("other", |_| async { Ok::<_, Failure>(()) });
    engine.orchestrate(move |_: Work, context: OrchestrationContext| {
        let (gate, runs) = (held.clone(), Arc::clone(&counted));
        async move {
            let step = context.step("long", move || async move {
                runs.fetch_add(1, Ordering::SeqCst);
                gate.pass().await;
                Ok(())
            });
            step.await?;
            Ok("over".to_owned())
        }
    });
    let run = start_run(&engine);
    let task = start(&engine).await;
    gate.entered(1).await;
    faulty.fail_once(faulty.calls() + 2, Side::Before, Fault::Busy);
    let other = engine.submit_task(plain("other")).await.unwrap();
    let waiting = engine.clone();
    let ended = tokio::spawn(async move { waiting.wait(other.id()).await.unwrap() });
    store.advance_until(SECOND, ended).await;
    gate.open(2);
    assert_eq!(engine.wait(task).await.unwrap().state, TaskState::Completed);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    stop(&engine, run).await;
}
