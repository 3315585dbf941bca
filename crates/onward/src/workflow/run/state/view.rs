//! The steps of a run, for readers.

use onward_store::{TaskId, Timestamp};

use super::step_state::StepState;
use super::undo_state::UndoState;
use super::{RunState, StepRecord};
use crate::workflow::run::context::RunContext;

/// A step as readers see it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepView<'a> {
    pub(crate) name: &'a str,
    pub(crate) state: StepState,
    /// The reason why the step did not run, or not to its own end.
    pub(crate) reason: Option<String>,
    pub(crate) error: Option<&'a str>,
    /// The question that a signal answers.
    pub(crate) title: Option<&'a str>,
    /// The task of a step that ended.
    pub(crate) task: Option<TaskId>,
    pub(crate) attempts: u32,
    /// The items of a step with `each`.
    pub(crate) items: Option<ItemCounts>,
    pub(crate) undo: UndoState,
    pub(crate) undo_error: Option<&'a str>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) ended: Option<Timestamp>,
    /// The moment for which the step waits.
    pub(crate) until: Option<Timestamp>,
}

/// The numbers of items of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemCounts {
    pub(crate) count: u32,
    pub(crate) open: u32,
    pub(crate) completed: u32,
    pub(crate) bad: u32,
}

impl RunState {
    /// Returns the steps in the order of their names.
    pub(crate) fn steps<'a>(&'a self, context: &'a RunContext) -> impl Iterator<Item = StepView<'a>> {
        let steps = context.template.steps.iter().zip(self.steps.iter());
        steps.map(|(step, record)| view(context, &step.name, record))
    }
}

fn view<'a>(context: &RunContext, name: &'a str, record: &'a StepRecord) -> StepView<'a> {
    let items = record.batch.as_ref().map(|batch| ItemCounts {
        count: batch.count,
        open: batch.open,
        completed: batch.completed,
        bad: batch.bad,
    });
    StepView {
        name,
        state: record.state,
        reason: record.reason.map(|reason| reason.text(&context.template)),
        error: record.error.as_deref(),
        title: record.title.as_deref().filter(|_| record.state == StepState::Waiting),
        task: record.task,
        attempts: record.attempts,
        items,
        undo: record.undo.as_ref().map(|undo| undo.state).unwrap_or_default(),
        undo_error: record.undo.as_ref().and_then(|undo| undo.error.as_deref()),
        started: record.started,
        ended: record.ended,
        until: record.until,
    }
}
