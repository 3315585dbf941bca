//! How an attempt ends, and what becomes of its task.

use onward::{Failure, TaskState};

use crate::fixture::{submit, worlds};

/// Shows: T1
#[tokio::test]
async fn a_task_runs_and_keeps_its_result() {
    for world in worlds().await {
        let engine = world.engine().await;
        engine.handle("greet", |_| async { Ok::<_, Failure>("hello") });
        let id = submit(&engine, "greet").await;
        assert_eq!(engine.drain().await.unwrap().completed, 1);
        let record = engine.wait(id).await.unwrap();
        assert_eq!((record.state, record.result.as_deref()), (TaskState::Completed, Some(&b"hello"[..])));
    }
}
