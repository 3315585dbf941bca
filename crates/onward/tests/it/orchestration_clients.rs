//! What programs do to orchestrations from outside, and what these can ask for, on every store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward::orchestration::OrchestrationContext;
use onward::{Failure, TaskId, TaskState};

use crate::fixture::{error, state, worlds};
use crate::orchestrations::{Double, Part, Work, engine, finish, start};

/// Shows: D3
#[tokio::test]
async fn a_queue_of_events_gives_one_after_the_other() {
    for world in worlds().await {
        let engine = engine(&world, |_, context| async move {
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
}

/// Shows: D2
#[tokio::test]
async fn an_activity_has_a_time_for_all_its_attempts() {
    for world in worlds().await {
        let engine = engine(&world, |_, context| async move {
            let never = context.activity_task::<()>(onward::NewTask::new("fails")?);
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
        world.clock.advance(Duration::from_secs(40));
        let said = finish(&engine, task).await.unwrap();
        assert!(said.contains("fails") && said.contains("not now"), "{said}");
    }
}

/// Shows: D3
#[tokio::test]
async fn a_signal_starts_what_is_not_there() {
    for world in worlds().await {
        let engine = engine(&world, |_, _| async { Ok(String::new()) }).await;
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
}

/// Shows: D3
#[tokio::test]
async fn a_signal_starts_nothing_that_has_no_key() {
    for world in worlds().await {
        let engine = engine(&world, |_, _| async { Ok(String::new()) }).await;
        let said = engine.signal_or_start(Work(1), "word", &"good").await.unwrap_err().to_string();
        assert!(said.contains("this `work` has no key"), "{said}");
        assert!(engine.cancel(TaskId(1)).await.unwrap_err().is_not_found());
    }
}

/// Shows: D8
#[tokio::test]
async fn a_terminated_orchestration_hears_nothing() {
    for world in worlds().await {
        let engine = engine(&world, |_, context| async move {
            context.cancelled().await;
            context.set_status(&"heard")?;
            Ok(String::new())
        })
        .await;
        let task = start(&engine).await;
        engine.run_until_idle().await.unwrap();
        engine.terminate(task, "the customer left").await.unwrap();
        engine.run_until_idle().await.unwrap();
        assert_eq!(state(&world, task).await, TaskState::Cancelled);
        assert_eq!(error(&world, task).await, "the customer left");
        let status = engine.orchestration_status(task).await.unwrap();
        assert_eq!(status.status::<String>().unwrap(), None);
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

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
#[tokio::test]
async fn what_the_code_tells_a_log_is_told_once() {
    for world in worlds().await {
        let code = |_: Work, context: OrchestrationContext| async move {
            tracing::info!("before the event");
            context.event::<()>("go")?.await?;
            tracing::info!("after it");
            Ok(context.activity(Double(1)).await?.to_string())
        };
        let lines = Lines::default();
        let told = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || told.clone()).finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let first = engine(&world, code).await;
        let task = start(&first).await;
        first.run_until_idle().await.unwrap();
        first.signal(task, "go", &()).await.unwrap();
        finish(&engine(&world, code).await, task).await.unwrap();
        let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(lines.matches("before the event").count(), 1, "{lines}");
        assert_eq!(lines.matches("after it").count(), 1, "{lines}");
    }
}
