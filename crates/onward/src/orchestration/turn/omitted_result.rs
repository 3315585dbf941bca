//! Results that are too large for the report of a task's end, which are read from the task.

use onward_store::{Message, MessageBody, Store, StoreReads, TaskId, TaskResult, TaskState};

use super::run_turn::TurnAbort;
use crate::bounds;

/// Completes the reports that leave a result out, so that the code sees no difference.
pub(super) async fn read_omitted(store: &dyn Store, messages: &mut [Message]) -> Result<(), TurnAbort> {
    for message in messages {
        let MessageBody::Ended { task, state, result, error, omitted, .. } = &mut message.body else { continue };
        let Some(size) = omitted.take() else { continue };
        let record = store.task(*task).await;
        let record = record.map_err(|error| TurnAbort::GiveBack(bounds::STORE_RETRY_LONGEST, error.to_string()))?;
        match record.map(|record| record.result) {
            Some(TaskResult::Value(value)) => *result = Some(value),
            _ => (*state, *error) = (TaskState::Dead, Some(removed(*task, size))),
        }
    }
    Ok(())
}

fn removed(task: TaskId, size: u64) -> String {
    format!(
        "the result of task {task} has {size} bytes and was removed with the task before its orchestration read it; keep ended tasks for longer"
    )
}
