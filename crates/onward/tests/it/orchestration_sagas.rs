//! Sagas: steps that are undone in reverse order.

use onward::orchestration::{OrchestrationContext, Saga, select};
use onward::store::Durability;
use onward::{Engine, Failure, Task, TaskFilter, TaskId, TaskState};
use onward_store::StoreReads;
use serde::{Deserialize, Serialize};

use crate::fixture::{SECOND, TestStore, error, state};
use crate::kills::{Worker, store_of_worker};
use crate::orchestrations::{Answer, Work};

on_every_store! {
    after_a_failure_the_steps_are_undone_in_reverse_order,
    after_a_cancellation_the_steps_are_undone_and_it_ends_as_cancelled,
    a_cancellation_while_steps_are_undone_stops_nothing,
    a_compensation_that_fails_keeps_no_other_from_running,
    what_has_succeeded_and_what_continues_as_new_is_not_undone,
    an_interrupted_step_is_undone_where_its_compensation_was_registered_before,
    a_cancellation_undoes_the_steps_of_a_saga_in_a_saga_too,
    a_cancellation_does_not_stop_a_saga_in_a_saga_that_undoes_its_steps,
    a_cancellation_does_not_stop_a_saga_in_a_compensation,
    a_saga_that_was_dropped_is_undone_with_the_one_around_it,
    a_saga_in_a_saga_that_continues_as_new_undoes_nothing,
}

/// A step of a trip; a negative one undoes it.
#[derive(Clone, Serialize, Deserialize)]
struct Stop(i32);

impl Task for Stop {
    const KIND: &'static str = "stop";
    type Output = i32;
}

/// The number of the step that fails for good.
const FAILS: i32 = 100;

fn undo(context: OrchestrationContext, stop: i32) -> onward::orchestration::Activity<i32> {
    context.activity(Stop(-stop))
}

async fn stops(saga: &Saga, context: &OrchestrationContext, stops: &[i32]) -> Result<(), Failure> {
    for stop in stops {
        saga.step(context.activity(Stop(*stop)), undo).await?;
    }
    Ok(())
}

/// Makes three stops, waits for `go`, and fails if the event asks for it.
async fn trip(_: Work, context: OrchestrationContext) -> Answer {
    context
        .saga(|saga, context| async move {
            stops(&saga, &context, &[1, 2, 3]).await?;
            let last: i32 = context.event("go")?.await?;
            stops(&saga, &context, &[last]).await?;
            Ok("there".to_owned())
        })
        .await
}

/// Opens an engine without any state in memory, so that each turn of its orchestrations is a
/// replay.
async fn forgetful<F, A>(store: &TestStore, code: F) -> Engine
where
    F: Fn(Work, OrchestrationContext) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let engine = store.builder().orchestrations_cached(0).open().await.unwrap();
    engine.orchestrate(code);
    engine
}

/// Runs until nothing is left to do, with a new engine for each turn and each activity, as if each
/// was killed afterwards.
async fn run<F, A>(store: &TestStore, code: F)
where
    F: Fn(Work, OrchestrationContext) -> A + Send + Sync + Clone + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    loop {
        forgetful(store, code.clone()).await.run_until_idle().await.unwrap();
        let worker = store.engine().await;
        worker.register(|stop: Stop, _| async move {
            if stop.0.abs() == FAILS { Err(Failure::permanent("no room")) } else { Ok(stop.0) }
        });
        if worker.run_until_idle().await.unwrap().ended() == 0 {
            return;
        }
    }
}

/// Returns the stops that were made and undone, in order.
async fn made(engine: &Engine) -> Vec<i32> {
    let mut made = engine.tasks().kind(Stop::KIND).with_payload().collect().await.unwrap();
    made.sort_by_key(|task| task.id);
    made.iter().map(|task| serde_json::from_slice(task.payload.as_ref().unwrap()).unwrap()).collect()
}

async fn start(engine: &Engine) -> TaskId {
    engine.submit(Work(1)).await.unwrap().id()
}

/// Shows: W5, D1
async fn after_a_failure_the_steps_are_undone_in_reverse_order(store: TestStore) {
    let engine = store.engine().await;
    let task = start(&engine).await;
    run(&store, trip).await;
    engine.signal(task, "go", &FAILS).await.unwrap();
    run(&store, trip).await;
    assert_eq!(made(&engine).await, [1, 2, 3, FAILS, -3, -2, -1]);
    assert_eq!(state(&store, task).await, TaskState::Failed);
    let error = error(&store, task).await;
    assert!(error.contains("no room") && !error.contains("compensations"), "{error}");
}

/// Cancels the trip of some code after three stops.
async fn cancel_after_stops<F, A>(store: TestStore, code: F)
where
    F: Fn(Work, OrchestrationContext) -> A + Copy + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let engine = store.engine().await;
    let task = start(&engine).await;
    run(&store, code).await;
    engine.cancel(task).await.unwrap();
    run(&store, code).await;
    assert_eq!(made(&engine).await, [1, 2, 3, -3, -2, -1]);
    assert_eq!(state(&store, task).await, TaskState::Cancelled);
}

/// Cancels the trip of some code after its last stop has failed, while it is undone.
async fn cancel_while_undone<F, A>(store: &TestStore, code: F) -> TaskId
where
    F: Fn(Work, OrchestrationContext) -> A + Copy + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let engine = store.engine().await;
    let task = start(&engine).await;
    run(store, code).await;
    engine.signal(task, "go", &FAILS).await.unwrap();
    // The last step is submitted and fails; then the first compensation is submitted.
    forgetful(store, code).await.run_until_idle().await.unwrap();
    let worker = store.engine().await;
    worker.register(|_: Stop, _| async { Err(Failure::permanent("no room")) });
    worker.run_until_idle().await.unwrap();
    forgetful(store, code).await.run_until_idle().await.unwrap();
    assert_eq!(made(&engine).await, [1, 2, 3, FAILS, -3]);
    engine.cancel(task).await.unwrap();
    run(store, code).await;
    assert_eq!(made(&engine).await, [1, 2, 3, FAILS, -3, -2, -1]);
    task
}

/// Shows: W5, D8
async fn after_a_cancellation_the_steps_are_undone_and_it_ends_as_cancelled(store: TestStore) {
    cancel_after_stops(store, trip).await;
}

/// Shows: W5, D8
async fn a_cancellation_while_steps_are_undone_stops_nothing(store: TestStore) {
    let task = cancel_while_undone(&store, trip).await;
    assert_eq!(state(&store, task).await, TaskState::Failed);
}

/// Shows: W5
async fn a_compensation_that_fails_keeps_no_other_from_running(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move {
        context
            .saga(|saga, context| async move {
                stops(&saga, &context, &[1]).await?;
                saga.compensate_with(|context| context.activity(Stop(-FAILS)));
                stops(&saga, &context, &[2]).await?;
                context.event::<()>("never")?.await?;
                Ok(String::new())
            })
            .await
    };
    let engine = store.engine().await;
    let task = start(&engine).await;
    run(&store, code).await;
    engine.cancel(task).await.unwrap();
    run(&store, code).await;
    assert_eq!(made(&engine).await, [1, 2, -2, -FAILS, -1]);
    let error = error(&store, task).await;
    assert!(
        error.starts_with("it was cancelled; 1 of its compensations failed: ") && error.contains("no room"),
        "{error}"
    );
    assert_eq!(state(&store, task).await, TaskState::Failed);
}

/// Shows: W5, D4
async fn what_has_succeeded_and_what_continues_as_new_is_not_undone(store: TestStore) {
    let code = |work: Work, context: OrchestrationContext| async move {
        context
            .saga(|saga, context| async move {
                stops(&saga, &context, &[work.0 as i32]).await?;
                if work.0 == 1 { Err(context.continue_as_new(&Work(2))) } else { Ok("there".to_owned()) }
            })
            .await
    };
    let engine = store.engine().await;
    let task = start(&engine).await;
    run(&store, code).await;
    assert_eq!(made(&engine).await, [1, 2]);
    assert_eq!(state(&store, task).await, TaskState::Completed);
}

/// Shows: W5, D8
async fn an_interrupted_step_is_undone_where_its_compensation_was_registered_before(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move {
        context
            .saga(|saga, context| async move {
                saga.compensate_with(|context| context.activity(Stop(-1)));
                stops(&saga, &context, &[1]).await?;
                Ok(String::new())
            })
            .await
    };
    let engine = store.engine().await;
    let task = start(&engine).await;
    forgetful(&store, code).await.run_until_idle().await.unwrap();
    engine.cancel(task).await.unwrap();
    run(&store, code).await;
    assert_eq!(made(&engine).await, [1, -1]);
    assert_eq!(engine.tasks().kind(Stop::KIND).state(TaskState::Cancelled).count().await.unwrap(), 1);
    assert_eq!(state(&store, task).await, TaskState::Cancelled);
}

/// The number of sagas under way while processes are killed.
const SAGAS: usize = 30;
/// The number of processes that are killed. It is below the number of lost leases that makes a task
/// a dead letter.
const KILLS: usize = 2;

/// Makes the first stop in a saga and the second in a saga within it, which then waits.
async fn nested(_: Work, context: OrchestrationContext) -> Answer {
    context
        .saga(|saga, context| async move {
            stops(&saga, &context, &[1]).await?;
            trip_of(&context, &[2, 3]).await?;
            Ok("there".to_owned())
        })
        .await
}

/// Makes stops in a saga of their own, and one more when `go` names it.
async fn trip_of(context: &OrchestrationContext, first: &'static [i32]) -> Result<(), Failure> {
    context
        .saga(|saga, context| async move {
            stops(&saga, &context, first).await?;
            let last: i32 = context.event("go")?.await?;
            stops(&saga, &context, &[last]).await
        })
        .await
}

/// Shows: W5, D8
async fn a_cancellation_undoes_the_steps_of_a_saga_in_a_saga_too(store: TestStore) {
    cancel_after_stops(store, nested).await;
}

/// Shows: W5, D8
async fn a_cancellation_does_not_stop_a_saga_in_a_saga_that_undoes_its_steps(store: TestStore) {
    cancel_while_undone(&store, nested).await;
    let undone = store.count(TaskFilter {
        states: vec![TaskState::Cancelled],
        kind: Some(Stop::KIND.parse().unwrap()),
        ..TaskFilter::default()
    });
    assert_eq!(undone.await.unwrap(), 0, "a compensation was cancelled");
}

/// Shows: W5, D8
async fn a_cancellation_does_not_stop_a_saga_in_a_compensation(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move {
        context
            .saga(|saga, context| async move {
                saga.compensate_with(|context| async move {
                    context.saga(|saga, context| async move { stops(&saga, &context, &[7, 8]).await }).await
                });
                context.event::<()>("never")?.await?;
                Ok(String::new())
            })
            .await
    };
    let engine = store.engine().await;
    let task = start(&engine).await;
    run(&store, code).await;
    engine.cancel(task).await.unwrap();
    run(&store, code).await;
    assert_eq!(made(&engine).await, [7, 8]);
    assert_eq!(state(&store, task).await, TaskState::Cancelled);
}

/// Shows: W5, D8
async fn a_saga_that_was_dropped_is_undone_with_the_one_around_it(store: TestStore) {
    let code = |_: Work, context: OrchestrationContext| async move {
        context
            .saga(|saga, context| async move {
                stops(&saga, &context, &[1]).await?;
                // The saga within loses, because nothing sends `go`.
                let trip = Box::pin(trip_of(&context, &[2]));
                select(trip, context.event::<()>("late")?).await;
                stops(&saga, &context, &[FAILS]).await?;
                Ok(String::new())
            })
            .await
    };
    let engine = store.engine().await;
    let task = start(&engine).await;
    run(&store, code).await;
    engine.signal(task, "late", &()).await.unwrap();
    run(&store, code).await;
    assert_eq!(made(&engine).await, [1, 2, FAILS, -2, -1]);
    assert_eq!(state(&store, task).await, TaskState::Failed);
}

/// Shows: W5, D4
async fn a_saga_in_a_saga_that_continues_as_new_undoes_nothing(store: TestStore) {
    let code = |work: Work, context: OrchestrationContext| async move {
        context
            .saga(|saga, context| async move {
                stops(&saga, &context, &[work.0 as i32]).await?;
                if work.0 == 2 {
                    return Ok("there".to_owned());
                }
                let again = context.clone();
                context.saga(|_, _| async move { Err::<String, _>(again.continue_as_new(&Work(2))) }).await
            })
            .await
    };
    let engine = store.engine().await;
    let task = start(&engine).await;
    run(&store, code).await;
    assert_eq!(made(&engine).await, [1, 2]);
    assert_eq!(state(&store, task).await, TaskState::Completed);
}

async fn engine_of_process(store: &str) -> Engine {
    Engine::builder().sqlite(store).durability(Durability::Normal).lease(SECOND).open().await.unwrap()
}

/// Not a test: the worker process.
#[tokio::test]
#[ignore = "it is a process of the test, started by it"]
async fn worker() {
    let engine = engine_of_process(&store_of_worker()).await;
    engine.register(|stop: Stop, _| async move {
        if stop.0 == FAILS { Err(Failure::permanent("no room")) } else { Ok(stop.0) }
    });
    engine.orchestrate(|_: Work, context: OrchestrationContext| async move {
        context
            .saga(|saga, context| async move {
                stops(&saga, &context, &[1, 2, 3, 4, 5, FAILS]).await?;
                Ok(String::new())
            })
            .await
    });
    engine.run().await.unwrap();
}

/// Shows: W5, D1
#[tokio::test]
async fn steps_are_undone_once_though_processes_are_killed() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("onward.db").display().to_string();
    let engine = engine_of_process(&store).await;
    let mut events = engine.events(onward::observe::EventCursor::START);
    let mut sagas = Vec::new();
    for _ in 0..KILLS {
        let worker = Worker::start("orchestration_sagas::worker", &store);
        for _ in 0..SAGAS / KILLS {
            sagas.push(start(&engine).await);
        }
        // The kill happens in the middle of the work.
        for _ in 0..SAGAS * 2 {
            events.next().await.unwrap();
        }
        drop(worker);
    }
    let _worker = Worker::start("orchestration_sagas::worker", &store);
    for saga in sagas {
        let record = engine.wait(saga).await.unwrap();
        assert_eq!(record.state, TaskState::Failed, "{:?}", record.errors);
        let children = TaskFilter { parent: Some(saga), ..TaskFilter::default() };
        assert_eq!(engine.store().count(children).await.unwrap(), 11);
        let mut made = engine.tasks().parent(saga).with_payload().collect().await.unwrap();
        made.sort_by_key(|task| task.id);
        let made: Vec<i32> =
            made.iter().map(|task| serde_json::from_slice(task.payload.as_ref().unwrap()).unwrap()).collect();
        assert_eq!(made, [1, 2, 3, 4, 5, FAILS, -5, -4, -3, -2, -1]);
    }
}
