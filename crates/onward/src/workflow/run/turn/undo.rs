//! Undoing what a run did: dependents first.

use onward_store::TaskId;

use super::places::Part;
use super::{NotRead, Turn, cut, number};
use crate::workflow::expression::Value;
use crate::workflow::run::decision::StepTask;
use crate::workflow::run::state::StepRecord;
use crate::workflow::run::state::event::RunEvent;
use crate::workflow::run::state::json::Json;
use crate::workflow::run::state::phase::Phase;
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::run::state::undo_state::UndoState;
use crate::workflow::template::{Undo, Work, WorkKind};

impl<'a> Turn<'a> {
    /// Begins the undo of all steps that may have had an effect.
    pub(super) fn begin_undo(&mut self) -> Result<(), NotRead> {
        let steps = (0..self.state.steps.len()).filter(|step| self.needs_undo(*step)).map(number).collect();
        self.change_phase(Phase::Undoing, None, None);
        self.record(RunEvent::UndoBegan { steps });
        self.continue_undo()
    }

    /// Begins the undo of another run, whose state this run has copied.
    pub(super) fn begin_undo_of_run(&mut self, run: TaskId) -> Result<bool, NotRead> {
        self.record(RunEvent::UndoOfRun { at: self.at(), run: run.0 });
        if self.state.has_undo_begun {
            // The other run may have undone a part before it ended. The rest is undone here.
            self.change_phase(Phase::Undoing, None, None);
        } else {
            self.begin_undo()?;
        }
        Ok(true)
    }

    fn needs_undo(&self, step: usize) -> bool {
        let Some((work, _)) = self.undo(step) else { return false };
        self.state.steps.get(step).is_some_and(|record| may_have_happened(record, work.each.is_some()))
    }

    /// Returns the work and the undo of a step. A workflow without an undo is undone as its own
    /// template says.
    fn undo(&self, step: usize) -> Option<(&'a Work, Option<&'a Undo>)> {
        let work = self.work(step)?;
        let is_workflow = matches!(work.kind, WorkKind::Workflow { .. });
        (work.undo.is_some() || is_workflow).then_some((work, work.undo.as_ref()))
    }

    /// Starts the undos that may start, and ends the run or holds it after the last.
    pub(super) fn continue_undo(&mut self) -> Result<(), NotRead> {
        while !self.is_full()
            && let Some(step) = self.next_undo()
        {
            self.start_undo(step)?;
        }
        let mut states = (0..self.state.steps.len()).map(|step| self.state.undo_of(step));
        if states.clone().any(|state| state == UndoState::Open) || self.is_full() {
            return Ok(());
        }
        if states.any(|state| state == UndoState::Failed) {
            self.change_phase(Phase::Held, None, None);
        } else {
            self.end_undone();
        }
        Ok(())
    }

    /// Ends a run after its undo. A run whose purpose is to undo another one completes.
    fn end_undone(&mut self) {
        if self.state.is_undo_run {
            self.change_phase(Phase::Completed, None, Some(Json::of(Value::Null)));
        } else {
            let outcome = self.outcome();
            self.end_run(outcome);
        }
    }

    /// Returns a step whose undo may start: all behind it is undone.
    pub(super) fn next_undo(&self) -> Option<usize> {
        self.state.steps.iter().position(|record| {
            record.undo.as_ref().is_some_and(|undo| undo.state == UndoState::Needed && undo.waits == 0)
        })
    }

    fn start_undo(&mut self, step: usize) -> Result<(), NotRead> {
        let Some((work, undo)) = self.undo(step) else {
            self.record(RunEvent::UndoEnded { step: number(step), error: None });
            return Ok(());
        };
        if work.each.is_some() {
            return self.fill_undo(step);
        }
        self.submit_undo(step, work, undo, None)?;
        self.end_undo(step);
        Ok(())
    }

    fn submit_undo(&mut self, step: usize, work: &Work, undo: Option<&Undo>, item: Option<u32>) -> Result<(), NotRead> {
        let task = match self.undo_task(step, work, undo, item) {
            Ok(task) => Ok(task),
            Err(trouble) => Err(self.message(Part::Undo(step), trouble)?),
        };
        let reference = self.submit(step, item, true);
        match task {
            Ok(task) => self.effects.submits.push(StepTask { reference, step, item, undo: true, task }),
            Err(error) => self.record_unsubmitted(reference, StepState::Failed, Some(error)),
        }
        Ok(())
    }

    /// Submits undos of items up to the number that may be open.
    pub(super) fn fill_undo(&mut self, step: usize) -> Result<(), NotRead> {
        let Some((work, undo)) = self.undo(step) else { return Ok(()) };
        while let Some(item) = self.next_item_to_undo(step, work) {
            self.submit_undo(step, work, undo, Some(item))?;
        }
        self.end_undo(step);
        Ok(())
    }

    fn next_item_to_undo(&self, step: usize, work: &Work) -> Option<u32> {
        let record = self.state.steps.get(step)?;
        let (batch, undo) = (record.batch.as_ref()?, record.undo.as_ref()?);
        let parallel = work.each.as_ref().map_or(1, |each| each.parallel);
        if undo.open >= parallel || self.is_full() {
            return None;
        }
        let needs_undo = |index: &u32| {
            let item = batch.items.get(*index as usize);
            item.is_some_and(|item| item.may_have_happened) && !undo.undone.contains(index)
        };
        (undo.next..batch.count).find(needs_undo)
    }

    /// Returns true if an earlier turn had no room for all undos of items.
    pub(super) fn is_undo_unfilled(&self, step: usize) -> bool {
        let open = self.state.steps.get(step).and_then(|record| record.undo.as_ref()).map(|undo| undo.open);
        open == Some(0) || self.work(step).is_some_and(|work| self.next_item_to_undo(step, work).is_some())
    }

    /// Ends the undo of a step if nothing of it is open.
    fn end_undo(&mut self, step: usize) {
        let Some(undo) = self.state.steps.get(step).and_then(|record| record.undo.as_ref()) else { return };
        if undo.open == 0 && !self.is_full() {
            let error = undo.error.as_deref().map(|error| cut(error.to_owned()));
            self.record(RunEvent::UndoEnded { step: number(step), error });
        }
    }

    /// Continues after a task of an undo has ended.
    pub(super) fn undo_task_ended(&mut self, step: usize) -> Result<(), NotRead> {
        match self.work(step) {
            Some(work) if work.each.is_some() => self.fill_undo(step),
            _ => {
                self.end_undo(step);
                Ok(())
            }
        }
    }
}

/// Returns true if a step may have had an effect that is still there. The effect of a step with
/// items is that of its items: if it was completed by hand before it had any, there is nothing to
/// undo.
fn may_have_happened(record: &StepRecord, has_items: bool) -> bool {
    let by_items = record.batch.as_ref().map(|batch| batch.items.iter().any(|item| item.may_have_happened));
    record.state != StepState::Skipped && by_items.unwrap_or(record.may_have_happened && !has_items)
}
