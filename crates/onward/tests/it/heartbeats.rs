//! Handlers that must send heartbeats.

use std::time::Duration;

use onward::handlers::Interruption;
use onward::orchestration::OrchestrationContext;
use onward::{Backoff, Context, Engine, Failure, HandlerOptions, NewTask, RetryPolicy, Task, TaskId, TaskState};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::fixture::{Gate, HOUR, SECOND, TestStore, error, record, start, state, stop, task};

on_every_store! {
    a_heartbeat_restarts_the_timeout,
    a_handler_that_is_silent_for_too_long_is_tried_again,
    a_handler_is_notified_of_a_missed_heartbeat_and_may_still_return,
    the_heartbeat_timeout_of_a_task_goes_before_that_of_its_handler,
    without_a_heartbeat_timeout_a_handler_may_be_silent,
    an_activity_that_gets_stuck_goes_on_where_its_last_sign_of_life_was,
    an_orchestration_is_refused_a_heartbeat_timeout_and_a_handler_one_of_zero,
}

const TWICE: RetryPolicy = RetryPolicy { attempts: 2, backoff: Backoff::Constant { delay: Duration::ZERO } };

/// Returns a task that may be silent for a second.
fn watched(kind: &str) -> NewTask {
    NewTask { heartbeat_timeout: Some(SECOND), ..task(kind) }
}

fn waiting(engine: &Engine, id: TaskId) -> JoinHandle<()> {
    let engine = engine.clone();
    tokio::spawn(async move { drop(engine.wait(id).await.unwrap()) })
}

/// A call of a handler that counts as a heartbeat.
#[derive(Debug, Clone, Copy)]
enum Sign {
    Heartbeat,
    Progress,
    Bytes,
    Checkpoint,
}

impl Sign {
    async fn give(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Heartbeat => context.heartbeat(),
            Self::Progress => context.progress(0.5),
            Self::Bytes => context.progress_bytes(7, None),
            Self::Checkpoint => context.checkpoint(&7).await?,
        }
        Ok(())
    }
}

/// Runs a handler that sends a heartbeat five times, and after each waits for most of the allowed
/// silence. Returns how its task ended.
async fn signs(store: &TestStore, sign: Sign) -> TaskState {
    let (engine, gate) = (store.engine().await, Gate::new());
    let passing = gate.clone();
    engine.handle("alive", move |context: Context| {
        let gate = passing.clone();
        async move {
            for _ in 0..5 {
                sign.give(&context).await?;
                gate.pass().await;
            }
            context.interruption().map_or(Ok(()), |why| Err(Failure::permanent(format!("{why:?}"))))
        }
    });
    let id = engine.submit_task(watched("alive")).await.unwrap().id();
    let run = start(&engine);
    for _ in 0..5 {
        gate.entered(1).await;
        store.advance(SECOND * 3 / 4).await;
        gate.open(1);
    }
    engine.wait(id).await.unwrap();
    stop(&engine, run).await;
    state(store, id).await
}

/// Shows: D2
async fn a_heartbeat_restarts_the_timeout(store: TestStore) {
    for sign in [Sign::Heartbeat, Sign::Progress, Sign::Bytes, Sign::Checkpoint] {
        assert_eq!(signs(&store, sign).await, TaskState::Completed, "{sign:?}");
    }
}

/// Shows: D2
async fn a_handler_that_is_silent_for_too_long_is_tried_again(store: TestStore) {
    let engine = store.builder().retry(TWICE).open().await.unwrap();
    engine.handle("stuck", |context: Context| async move {
        if context.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    let id = engine.submit_task(watched("stuck")).await.unwrap().id();
    let run = start(&engine);
    store.advance_until(SECOND, waiting(&engine, id)).await;
    stop(&engine, run).await;
    let record = record(&store, id).await;
    assert_eq!((record.state, record.attempts), (TaskState::Completed, 2));
    assert_eq!(record.errors[0].message, "no heartbeat for 1s");
}

/// Shows: D2
async fn a_handler_is_notified_of_a_missed_heartbeat_and_may_still_return(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("slow", |context: Context| async move {
        context.cancelled().cancelled().await;
        assert_eq!(context.interruption(), Some(Interruption::HeartbeatMissed));
        Ok::<_, Failure>("late")
    });
    let id = engine.submit_task(watched("slow")).await.unwrap().id();
    let run = start(&engine);
    store.advance_until(SECOND / 4, waiting(&engine, id)).await;
    stop(&engine, run).await;
    assert_eq!(record(&store, id).await.result.as_deref(), Some(&b"late"[..]));
}

/// Shows: D2
async fn the_heartbeat_timeout_of_a_task_goes_before_that_of_its_handler(store: TestStore) {
    let engine = store.engine().await;
    let options = HandlerOptions::new().heartbeat_timeout(SECOND * 3);
    engine.handle_with("stuck", options, |context: Context| async move {
        context.cancelled().cancelled().await;
        Err::<(), _>(Failure::permanent(format!("{:?}", context.heartbeat_timeout().unwrap())))
    });
    let run = start(&engine);
    for (new, said) in [(task("stuck"), "3s"), (watched("stuck"), "1s")] {
        let id = engine.submit_task(new).await.unwrap().id();
        store.advance_until(SECOND, waiting(&engine, id)).await;
        assert_eq!(error(&store, id).await, format!("no heartbeat for {said}: {said}"));
    }
    stop(&engine, run).await;
}

/// Shows: D2
async fn without_a_heartbeat_timeout_a_handler_may_be_silent(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    engine.handle("quiet", gate.handler());
    let id = engine.submit_task(task("quiet")).await.unwrap().id();
    let run = start(&engine);
    gate.entered(1).await;
    store.clock.advance(HOUR / 2);
    gate.open(1);
    engine.wait(id).await.unwrap();
    stop(&engine, run).await;
    assert_eq!(state(&store, id).await, TaskState::Completed);
}

/// An orchestration with an activity that copies a file.
#[derive(Serialize, Deserialize)]
struct Backup;

impl Task for Backup {
    const KIND: &'static str = "backup";
    const ORCHESTRATION: bool = true;
    type Output = u64;
}

/// An activity that sets its own heartbeat timeout.
#[derive(Serialize, Deserialize)]
struct Copying;

impl Task for Copying {
    const KIND: &'static str = "copy";
    type Output = u64;

    fn heartbeat_timeout(&self) -> Option<Duration> {
        Some(HOUR)
    }
}

/// Copies blocks. Hangs in its first attempt, after its tenth block.
async fn copy(_: Copying, context: Context) -> Result<u64, Failure> {
    let from = context.last_checkpoint::<u64>()?.unwrap_or(0);
    for block in from..20 {
        context.checkpoint(&block).await?;
        if block == 10 && context.attempt() == 1 {
            std::future::pending::<()>().await;
        }
    }
    Ok(from)
}

/// Shows: D2
async fn an_activity_that_gets_stuck_goes_on_where_its_last_sign_of_life_was(store: TestStore) {
    let engine = store.engine().await;
    engine.register(copy);
    engine.orchestrate(|_: Backup, context: OrchestrationContext| async move {
        Ok(context.activity(Copying).heartbeat_timeout(SECOND).retry(TWICE).await?)
    });
    let id = engine.submit(Backup).await.unwrap().id();
    let run = start(&engine);
    store.advance_until(SECOND, waiting(&engine, id)).await;
    stop(&engine, run).await;
    assert_eq!(record(&store, id).await.result.as_deref(), Some(&b"10"[..]));
}

/// Shows: D2
async fn an_orchestration_is_refused_a_heartbeat_timeout_and_a_handler_one_of_zero(store: TestStore) {
    let engine = store.engine().await;
    let refused = engine.submit_task(NewTask { orchestration: true, ..watched("backup") }).await.unwrap_err();
    assert!(refused.to_string().contains("heartbeat timeout"), "{refused}");
    let options = HandlerOptions::new().heartbeat_timeout(Duration::ZERO);
    engine.handle_with("any", options, |_| async { Ok::<(), Failure>(()) });
    let refused = engine.run().await.unwrap_err();
    assert!(refused.to_string().contains("heartbeat timeout of zero"), "{refused}");
}
