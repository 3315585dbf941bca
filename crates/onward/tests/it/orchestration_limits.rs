//! What is too large or too much for orchestrations, on every store.

use onward::TaskState;
use onward::orchestration::OrchestrationContext;

use crate::fixture::{error, state, worlds};
use crate::orchestrations::{Work, start};

/// Shows: D9
#[tokio::test]
async fn a_step_whose_answer_is_too_large_for_the_history_is_not_kept() {
    for world in worlds().await {
        let narrow = world.builder().history_bytes(1000).open().await.unwrap();
        narrow.orchestrate(|_: Work, context: OrchestrationContext| async move {
            context.step("large", || async { Ok("x".repeat(2000)) }).await
        });
        let task = start(&narrow).await;
        narrow.run_until_idle().await.unwrap();
        assert_eq!(state(&world, task).await, TaskState::Dead);
        let said = error(&world, task).await;
        assert!(said.contains("may have") && said.contains("1000"), "{said}");
        assert!(world.store.instance(task).await.unwrap().unwrap_or_default().bytes < 1000);
    }
}
