//! New code that ends where the history of an orchestration continues. The check before a deploy
//! and the engine report the same, and no message is lost.

use onward::orchestration::{CheckFailure, CodeEnd, OrchestrationContext, RecordedHistory, join_all};
use onward::{Failure, NewTask, Task, TaskId, TaskState};
use onward_store::StoreReads;
use onward_store::bounds::AWAITED_CANCELLATION;
use serde::{Deserialize, Serialize};

use crate::fixture::{TestStore, error, state};
use crate::orchestrations::{Answer, Double, Work, engine, finish, start};

on_every_store! {
    code_that_returns_early_is_noticed,
    code_that_fails_early_is_noticed,
    code_that_panics_early_is_noticed,
    code_that_continues_as_new_early_is_noticed,
    code_that_drops_what_it_awaited_is_noticed,
    a_result_whose_type_has_changed_is_noticed,
    an_event_whose_type_has_changed_is_noticed,
    a_payload_whose_type_has_changed_is_noticed,
    a_clean_up_that_was_dropped_is_noticed,
    code_that_ends_where_its_history_waits_for_an_event_is_noticed,
    code_that_ends_where_its_history_waits_is_noticed_again_after_a_retry,
    a_dead_letter_keeps_what_came_for_the_code_that_is_brought_back,
    an_orchestration_that_has_ended_may_be_retried_where_its_code_ended,
    code_that_fails_as_it_did_fails_again_when_it_is_retried,
    a_query_of_code_that_ends_early_is_refused,
    code_that_ends_where_its_history_waits_for_a_cancellation_is_noticed,
    a_failed_orchestration_that_is_retried_continues_with_new_code,
    signals_that_the_failed_code_left_unread_are_there_for_the_new_code,
    new_code_behind_the_end_is_replayed_as_it_ran,
    other_code_is_no_new_end_where_the_history_waits,
}

/// Awaits an activity and two events.
async fn awaiting(_: Work, context: OrchestrationContext) -> Answer {
    let doubled = context.activity(Double(2)).await?;
    let first = context.event::<u32>("go")?.await?;
    let second = context.event::<u32>("on")?.await?;
    Ok(format!("{doubled} {first} {second}"))
}

/// Returns an orchestration that waits for the event `on`, and its history at that point.
async fn recorded<F, A>(store: &TestStore, code: F) -> (TaskId, RecordedHistory)
where
    F: Fn(Work, OrchestrationContext) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let engine = engine(store, code).await;
    let task = start(&engine).await;
    engine.run_until_idle().await.unwrap();
    engine.signal(task, "go", &1).await.unwrap();
    engine.run_until_idle().await.unwrap();
    (task, engine.record_history(task).await.unwrap())
}

/// Checks that the check and the engine report that `code` ends as `how`, in the same words.
async fn assert_noticed<F, A>(store: &TestStore, (task, history): (TaskId, RecordedHistory), code: F, how: &str)
where
    F: Fn(Work, OrchestrationContext) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let engine = engine(store, code).await;
    let reported = engine.check_history(&history).unwrap_err().to_string();
    assert!(reported.contains(how), "{reported}");
    engine.signal(task, "late", &2).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(store, task).await, TaskState::Dead);
    assert_eq!(error(store, task).await, reported);
    assert_eq!(store.instance(task).await.unwrap().unwrap().waiting, 1, "its mailbox is lost");
}

/// Shows: D5
async fn code_that_returns_early_is_noticed(store: TestStore) {
    let recorded = recorded(&store, awaiting).await;
    let early =
        |_: Work, context: OrchestrationContext| async move { Ok(context.activity(Double(2)).await?.to_string()) };
    let how = "at event 5 the code ends (it returns a result), and its history continues with the signal `go`";
    assert_noticed(&store, recorded, early, how).await;
}

/// Shows: D5
async fn code_that_fails_early_is_noticed(store: TestStore) {
    let recorded = recorded(&store, awaiting).await;
    let early = |_: Work, context: OrchestrationContext| async move {
        context.activity(Double(2)).await?;
        Err(Failure::permanent("no longer done"))
    };
    let how = "at event 5 the code ends (it fails: no longer done), and its history continues with the signal `go`";
    assert_noticed(&store, recorded, early, how).await;
}

/// Shows: D5
async fn code_that_panics_early_is_noticed(store: TestStore) {
    let recorded = recorded(&store, awaiting).await;
    let early = |_: Work, context: OrchestrationContext| async move {
        let doubled = context.activity(Double(2)).await?;
        assert_eq!(doubled, 5, "a bug");
        Ok(String::new())
    };
    let how = "at event 5 the code ends (it panicked: ";
    assert_noticed(&store, recorded, early, how).await;
}

/// Shows: D5
async fn code_that_continues_as_new_early_is_noticed(store: TestStore) {
    let recorded = recorded(&store, awaiting).await;
    let early = |_: Work, context: OrchestrationContext| async move {
        context.activity(Double(2)).await?;
        Err(context.continue_as_new(&Work(8)))
    };
    let how = "at event 5 the code ends (it continues as new), and its history continues with the signal `go`";
    assert_noticed(&store, recorded, early, how).await;
}

/// Shows: D5
async fn code_that_drops_what_it_awaited_is_noticed(store: TestStore) {
    let both = |_: Work, context: OrchestrationContext| async move {
        let never = context.activity_task::<()>(NewTask::new("nobody-does-this")?).start();
        context.event::<u32>("go")?.await?;
        context.event::<u32>("on")?.await?;
        never.await?;
        Ok(String::new())
    };
    let early = |_: Work, context: OrchestrationContext| async move {
        let _never = context.activity_task::<()>(NewTask::new("nobody-does-this")?).start();
        context.event::<u32>("go")?.await?;
        Ok(String::new())
    };
    let how = "at event 4 the code ends (it returns a result) with the cancellation of a `nobody-does-this` task";
    let recorded = recorded(&store, both).await;
    assert_noticed(&store, recorded, early, how).await;
}

/// Shows: D5
async fn a_result_whose_type_has_changed_is_noticed(store: TestStore) {
    let recorded = recorded(&store, awaiting).await;
    let changed = |_: Work, context: OrchestrationContext| async move {
        let task = NewTask { payload: "2".into(), ..NewTask::new("double")? };
        let doubled = context.activity_task::<Vec<String>>(task).await?;
        context.event::<u32>("go")?.await?;
        context.event::<u32>("on")?.await?;
        Ok(doubled.concat())
    };
    let how = "at event 5 the code ends (it fails: the result of the activity `double` does not match its type";
    assert_noticed(&store, recorded, changed, how).await;
}

/// Shows: D5
async fn an_event_whose_type_has_changed_is_noticed(store: TestStore) {
    let recorded = recorded(&store, awaiting).await;
    let changed = |_: Work, context: OrchestrationContext| async move {
        context.activity(Double(2)).await?;
        let first = context.event::<Vec<String>>("go")?.await?;
        context.event::<u32>("on")?.await?;
        Ok(first.concat())
    };
    let how = "at event 6 the code ends (it fails: the payload of the signal `go` does not match the type that the code reads";
    assert_noticed(&store, recorded, changed, how).await;
}

/// The task of [`Work`] in a later version of the program.
#[derive(Serialize, Deserialize)]
struct NewWork {
    number: u32,
}

impl Task for NewWork {
    const KIND: &'static str = "work";
    const ORCHESTRATION: bool = true;
    type Output = String;
}

/// Shows: D5
async fn a_payload_whose_type_has_changed_is_noticed(store: TestStore) {
    let (task, history) = recorded(&store, awaiting).await;
    let changed = store.engine().await;
    changed.orchestrate(|work: NewWork, _| async move { Ok(work.number.to_string()) });
    let reported = changed.check_history(&history).unwrap_err().to_string();
    assert!(reported.contains("at event 1 the code ends (it fails: the payload does not match"), "{reported}");
    changed.signal(task, "on", &2).await.unwrap();
    changed.run_until_idle().await.unwrap();
    assert_eq!((state(&store, task).await, error(&store, task).await), (TaskState::Dead, reported));
}

/// Shows: D5, D4
async fn a_clean_up_that_was_dropped_is_noticed(store: TestStore) {
    let cleaning = |_: Work, context: OrchestrationContext| async move {
        context.cancelled().await;
        context.event::<u32>("go")?.await?;
        context.event::<u32>("on")?.await?;
        Ok("clean".to_owned())
    };
    let first = engine(&store, cleaning).await;
    let task = start(&first).await;
    first.run_until_idle().await.unwrap();
    first.cancel(task).await.unwrap();
    first.signal(task, "go", &1).await.unwrap();
    first.run_until_idle().await.unwrap();
    let recorded = (task, first.record_history(task).await.unwrap());
    let heedless = |_: Work, context: OrchestrationContext| async move {
        context.event::<u32>("never")?.await?;
        Ok(String::new())
    };
    let how = "at event 3 the code ends (it ends at a request to cancel), and its history \
               continues with the signal `go`";
    assert_noticed(&store, recorded, heedless, how).await;
}

async fn only_go(_: Work, context: OrchestrationContext) -> Answer {
    context.activity(Double(2)).await?;
    context.event::<u32>("go")?.await?;
    Ok(String::new())
}

const WAITS_FOR_ON: &str =
    "at event 6 the code ends (it returns a result), and its history has it wait for the event `on`";

/// Shows: D5
async fn code_that_ends_where_its_history_waits_for_an_event_is_noticed(store: TestStore) {
    let recorded = recorded(&store, awaiting).await;
    assert_noticed(&store, recorded, only_go, WAITS_FOR_ON).await;
}

/// Shows: D5
async fn code_that_ends_where_its_history_waits_is_noticed_again_after_a_retry(store: TestStore) {
    let (task, history) = recorded(&store, awaiting).await;
    assert_noticed(&store, (task, history), only_go, WAITS_FOR_ON).await;
    let again = engine(&store, only_go).await;
    again.retry(task).await.unwrap();
    again.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Dead);
}

/// Shows: D5, D9
async fn a_dead_letter_keeps_what_came_for_the_code_that_is_brought_back(store: TestStore) {
    let (task, _) = recorded(&store, awaiting).await;
    let early = engine(&store, |_, _| async { Ok(String::new()) }).await;
    early.signal(task, "on", &2).await.unwrap();
    early.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Dead);
    let mended = engine(&store, awaiting).await;
    mended.retry(task).await.unwrap();
    assert_eq!(finish(&mended, task).await.unwrap(), "4 1 2");
}

/// Shows: D5
async fn an_orchestration_that_has_ended_may_be_retried_where_its_code_ended(store: TestStore) {
    let (task, _) = recorded(&store, awaiting).await;
    let engine = engine(&store, awaiting).await;
    engine.signal(task, "on", &2).await.unwrap();
    finish(&engine, task).await.unwrap();
    engine.check_history(&engine.record_history(task).await.unwrap()).unwrap();
    engine.retry(task).await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "4 1 2");
}

/// Shows: D5
async fn code_that_fails_as_it_did_fails_again_when_it_is_retried(store: TestStore) {
    let failing = |_: Work, context: OrchestrationContext| async move {
        let _all = join_all([context.event::<u32>("go")?, context.event::<u32>("go")?]).await;
        Err(Failure::permanent("never well"))
    };
    let engine = engine(&store, failing).await;
    let task = start(&engine).await;
    for round in 0..3 {
        engine.run_until_idle().await.unwrap();
        if round == 0 {
            engine.signal(task, "go", &1).await.unwrap();
            engine.signal(task, "go", &1).await.unwrap();
            engine.run_until_idle().await.unwrap();
        }
        assert_eq!((state(&store, task).await, error(&store, task).await), (TaskState::Failed, "never well".into()));
        engine.check_history(&engine.record_history(task).await.unwrap()).unwrap();
        engine.retry(task).await.unwrap();
        // The signal is too late for code that has ended, and is no event of its history.
        engine.signal(task, "late", &1).await.unwrap();
    }
}

/// Shows: D5, D4
async fn code_that_ends_where_its_history_waits_for_a_cancellation_is_noticed(store: TestStore) {
    let resting = |_: Work, context: OrchestrationContext| async move {
        context.event::<u32>("go")?.await?;
        context.cancelled().await;
        Ok(String::new())
    };
    let early = |_: Work, context: OrchestrationContext| async move {
        context.event::<u32>("go")?.await?;
        Ok(String::new())
    };
    let recorded = recorded(&store, resting).await;
    let awaits = store.instance(recorded.0).await.unwrap().unwrap().awaits;
    assert_eq!(awaits.iter().map(|name| name.as_str()).collect::<Vec<_>>(), [AWAITED_CANCELLATION]);
    let how = "the code ends (it returns a result), and its history has it wait for a request to cancel";
    assert_noticed(&store, recorded, early, how).await;
}

/// Fails after the event `go`.
async fn giving_up(_: Work, context: OrchestrationContext) -> Answer {
    context.activity(Double(2)).await?;
    context.event::<u32>("go")?.await?;
    Err(Failure::permanent("no stock"))
}

/// Does more after the event `go`.
async fn mended(_: Work, context: OrchestrationContext) -> Answer {
    let first = context.activity(Double(2)).await?;
    context.event::<u32>("go")?.await?;
    context.set_status(&"again")?;
    let second = context.activity(Double(first)).await?;
    let late = context.event::<u32>("late")?.await?;
    Ok(format!("{first} {second} {late}"))
}

/// Returns an orchestration whose code has failed.
async fn failed(store: &TestStore) -> TaskId {
    let (task, _) = recorded(store, giving_up).await;
    assert_eq!(state(store, task).await, TaskState::Failed);
    task
}

/// Shows: D5
async fn a_failed_orchestration_that_is_retried_continues_with_new_code(store: TestStore) {
    let task = failed(&store).await;
    let engine = engine(&store, mended).await;
    engine.retry(task).await.unwrap();
    engine.run_until_idle().await.unwrap();
    let status = engine.orchestration_status(task).await.unwrap();
    assert_eq!(status.status::<String>().unwrap().as_deref(), Some("again"));
    engine.signal(task, "late", &7).await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "4 8 7");
}

/// Shows: D5
async fn signals_that_the_failed_code_left_unread_are_there_for_the_new_code(store: TestStore) {
    let engine_of_old = engine(&store, giving_up).await;
    let task = start(&engine_of_old).await;
    engine_of_old.signal(task, "late", &7).await.unwrap();
    engine_of_old.signal(task, "go", &1).await.unwrap();
    engine_of_old.run_until_idle().await.unwrap();
    assert_eq!(state(&store, task).await, TaskState::Failed);
    let engine = engine(&store, mended).await;
    engine.retry(task).await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "4 8 7");
}

/// Shows: D5
async fn new_code_behind_the_end_is_replayed_as_it_ran(store: TestStore) {
    let task = failed(&store).await;
    let first = engine(&store, mended).await;
    first.retry(task).await.unwrap();
    first.run_until_idle().await.unwrap();
    let again = engine(&store, mended).await;
    again.check_history(&again.record_history(task).await.unwrap()).unwrap();
    again.signal(task, "late", &7).await.unwrap();
    assert_eq!(finish(&again, task).await.unwrap(), "4 8 7");
}

/// Shows: D5
async fn other_code_is_no_new_end_where_the_history_waits(store: TestStore) {
    let recorded = recorded(&store, awaiting).await;
    let how = "at event 6 the history ends, and the code has the submit of a `double` task";
    assert_noticed(&store, recorded, mended, how).await;
}

/// Shows: D5, D10
async fn a_query_of_code_that_ends_early_is_refused(store: TestStore) {
    let (task, history) = recorded(&store, awaiting).await;
    let early = engine(&store, |_, _| async { Ok(String::new()) }).await;
    let reported = early.query::<_, u32>(task, "total", &()).await.unwrap_err().to_string();
    assert!(reported.contains("at event 1 the code ends (it returns a result)"), "{reported}");
    let Err(CheckFailure::Differs(difference)) = early.check_history(&history) else { panic!("it fits") };
    assert_eq!((difference.place, difference.ended), (1, Some(CodeEnd::Completed)));
}
