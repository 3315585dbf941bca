//! Moments that have come: timers, deadlines and the timeout of the run.

use super::{NotRead, Turn, number};
use crate::workflow::expression::Value;
use crate::workflow::run::state::event::RunEvent;
use crate::workflow::run::state::json::Json;
use crate::workflow::run::state::phase::Phase;
use crate::workflow::run::state::reason::Reason;
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::run::state::undo_state::UndoState;
use crate::workflow::template::StepAction;

impl Turn<'_> {
    /// Processes the moments that have come. Returns false if there is none.
    pub(super) fn process_moments(&mut self) -> Result<bool, NotRead> {
        let due: Vec<usize> =
            self.state.moments.iter().take_while(|(moment, _)| *moment <= self.now).map(|(_, step)| *step).collect();
        let timed_out = self.state.times_out_at(self.context).filter(|(moment, _)| *moment <= self.now);
        let unfilled = self.unfilled();
        let has_undo = self.state.phase == Phase::Undoing && self.next_undo().is_some();
        if due.is_empty() && timed_out.is_none() && unfilled.is_empty() && !has_undo {
            return Ok(false);
        }
        self.record(RunEvent::MomentCame { at: self.at() });
        if let Some((_, error)) = timed_out {
            self.time_out(error)?;
        }
        due.into_iter().try_for_each(|step| self.continue_step(step))?;
        for step in unfilled {
            if self.state.phase == Phase::Undoing { self.fill_undo(step)? } else { self.fill(step)? }
        }
        Ok(true)
    }

    /// Continues a step whose moment has come.
    fn continue_step(&mut self, step: usize) -> Result<(), NotRead> {
        let Some(record) = self.state.steps.get(step).filter(|record| record.state == StepState::Waiting) else {
            return Ok(());
        };
        if record.is_delayed {
            return self.begin(step);
        }
        match self.step(step).map(|step| &step.action) {
            Some(StepAction::Wait(_)) => self.complete(step, Json::of(Value::Null)),
            Some(StepAction::Signal(signal)) => self.miss_signal(step, signal),
            _ => Ok(()),
        }
    }

    /// Returns the steps with items that an earlier turn had no room for.
    fn unfilled(&self) -> Vec<usize> {
        let is_undoing = self.state.phase == Phase::Undoing;
        let is_undo_open = |step: &usize| self.state.undo_of(*step) == UndoState::Open && self.is_undo_unfilled(*step);
        if is_undoing {
            return (0..self.state.steps.len()).filter(is_undo_open).collect();
        }
        let is_unfilled = |step: &usize| {
            let (record, work) = (self.state.steps.get(*step), self.work(*step));
            let each = work.and_then(|work| work.each.as_ref());
            match (record.filter(|record| record.state == StepState::Open), each) {
                (Some(record), Some(each)) => {
                    let batch = record.batch.as_ref();
                    batch.is_some_and(|batch| !batch.is_closed(each) && batch.open < each.parallel)
                }
                _ => false,
            }
        };
        (0..self.state.steps.len()).filter(is_unfilled).collect()
    }

    /// Fails the run, and cancels everything that runs.
    fn time_out(&mut self, error: &str) -> Result<(), NotRead> {
        self.record(RunEvent::PhaseChanged { phase: Phase::Stopping, error: Some(error.to_owned()), result: None });
        self.judges_all = true;
        self.cancel_active(Reason::Timeout)
    }

    /// Cancels everything that runs, and ends everything that waits.
    pub(super) fn cancel_active(&mut self, reason: Reason) -> Result<(), NotRead> {
        self.end_waiting(reason, |_| true)?;
        let mut batches: Vec<usize> = Vec::new();
        for (reference, open) in self.state.open.iter().filter(|(_, open)| !open.is_undo) {
            self.effects.cancels.push(reference);
            batches.extend(open.item.map(|_| open.step));
        }
        batches.sort_unstable();
        batches.dedup();
        for step in batches {
            self.record(RunEvent::BatchStopped { step: number(step) });
        }
        Ok(())
    }
}
