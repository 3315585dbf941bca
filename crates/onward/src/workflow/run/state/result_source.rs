//! The places of results, for readers of a run.

use bytes::Bytes;
use onward_store::TaskId;

use super::batch::Item;
use super::step_state::StepState;
use super::{RunState, StepResult};

/// The place of the result of a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StepResultSource {
    None,
    /// The history has it.
    Kept(Bytes),
    /// It is read with this task.
    Task(TaskId),
    /// The results of items, in their order.
    Items(Vec<StepResultSource>),
}

impl RunState {
    /// Returns the place of a step's result.
    pub(crate) fn result_source(&self, step: usize) -> StepResultSource {
        let Some(record) = self.steps.get(step) else { return StepResultSource::None };
        match (&record.result, &record.batch, record.task) {
            (StepResult::Kept(result), ..) => StepResultSource::Kept(result.bytes().clone()),
            (StepResult::None, Some(batch), _) if record.state == StepState::Completed => {
                StepResultSource::Items(batch.items.iter().map(of_item).collect())
            }
            (StepResult::Omitted, _, Some(task)) => StepResultSource::Task(task),
            _ => StepResultSource::None,
        }
    }
}

fn of_item(item: &Item) -> StepResultSource {
    match (item.state, &item.result, item.task) {
        (StepState::Completed, Some(result), _) => StepResultSource::Kept(result.bytes().clone()),
        (StepState::Completed, None, Some(task)) if item.is_omitted => StepResultSource::Task(task),
        _ => StepResultSource::None,
    }
}
