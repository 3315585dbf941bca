//! The fold of events about undos.

use std::sync::Arc;

use super::RunState;
use super::fold::TaskEnd;
use super::references::Open;
use super::step_state::StepState;
use super::undo_state::{UndoRecord, UndoState};
use crate::workflow::template::Template;

impl RunState {
    pub(in crate::workflow::run) fn change_undo(&mut self, step: usize, change: impl FnOnce(&mut UndoRecord)) {
        if let Some(undo) = self.steps.get_mut(step).and_then(|record| record.undo.as_mut()) {
            change(Arc::make_mut(undo));
        }
    }

    pub(in crate::workflow::run) fn undo_began(&mut self, template: &Template, steps: &[u32]) {
        self.has_undo_begun = true;
        for step in 0..self.steps.len() {
            let is_needed = u32::try_from(step).is_ok_and(|step| steps.binary_search(&step).is_ok());
            let state = if is_needed { UndoState::Needed } else { UndoState::None };
            let waits = template.graph.dependents(step).len();
            if let Some(record) = self.steps.get_mut(step) {
                record.undo = Some(Arc::new(UndoRecord { state, waits, ..UndoRecord::default() }));
            }
        }
        for step in template.graph.last() {
            self.settle(template, step);
        }
    }

    /// Marks steps as settled, from one against the direction of the graph.
    fn settle(&mut self, template: &Template, step: usize) {
        let mut left = vec![step];
        while let Some(step) = left.pop() {
            let undo = self.steps.get(step).and_then(|record| record.undo.as_deref());
            let is_settled = undo.is_some_and(|undo| {
                undo.waits == 0 && !undo.is_settled && matches!(undo.state, UndoState::None | UndoState::Completed)
            });
            if !is_settled {
                continue;
            }
            self.change_undo(step, |undo| undo.is_settled = true);
            for dependency in template.steps.get(step).map_or(&[][..], |step| &step.depends_on) {
                self.change_undo(dependency.step, |undo| undo.waits = undo.waits.saturating_sub(1));
                left.push(dependency.step);
            }
        }
    }

    pub(in crate::workflow::run) fn undo_submitted(&mut self, open: Open) {
        self.change_undo(open.step, |undo| {
            undo.state = UndoState::Open;
            undo.open += 1;
            undo.next = undo.next.max(open.item.map_or(1, |item| item + 1));
        });
    }

    pub(in crate::workflow::run) fn undo_task_ended(&mut self, open: Open, end: &TaskEnd<'_>) {
        self.change_undo(open.step, |undo| {
            undo.open = undo.open.saturating_sub(1);
            if end.state == StepState::Completed {
                Arc::make_mut(&mut undo.undone).extend(open.item);
            } else {
                undo.error = Some(end.error.as_deref().unwrap_or("the undo did not complete").into());
            }
        });
    }

    pub(in crate::workflow::run) fn undo_ended(&mut self, template: &Template, step: usize, error: Option<&str>) {
        self.change_undo(step, |undo| {
            undo.state = if error.is_none() { UndoState::Completed } else { UndoState::Failed };
            undo.error = error.map(Arc::from);
        });
        self.settle(template, step);
    }

    pub(in crate::workflow::run) fn undo_retried(&mut self, step: usize) {
        self.change_undo(step, |undo| {
            (undo.state, undo.error, undo.next) = (UndoState::Needed, None, 0);
        });
    }
}
