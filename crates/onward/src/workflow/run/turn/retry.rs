//! Further attempts of steps that are runs or orchestrations. The store retries other tasks.

use onward_store::When;

use super::scope::NoValue;
use super::{NotRead, Turn};
use crate::workflow::run::decision::StepTask;
use crate::workflow::run::state::references::Open;
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::template::WorkKind;

impl Turn<'_> {
    /// Submits the next attempt after one that ended badly. Returns false if there is none.
    pub(super) fn try_again(&mut self, open: Open, ended: StepState) -> Result<bool, NotRead> {
        let Some(work) = self.work(open.step).filter(|_| !open.is_undo) else { return Ok(false) };
        let is_child = matches!(work.kind, WorkKind::Workflow { .. } | WorkKind::Orchestration { .. });
        let Some(policy) = work.retry.filter(|_| is_child) else { return Ok(false) };
        // A run that is being cancelled, or that took too long, starts nothing.
        let is_stopped = self.state.is_cancelled || self.state.error.is_some();
        let attempts = self.attempts_of(open);
        if is_stopped || !matches!(ended, StepState::Failed | StepState::Dead) || attempts >= policy.attempts {
            return Ok(false);
        }
        let random = spread(self.context.facts.id, self.state.last_reference);
        let start = self.now.plus(policy.backoff.delay(attempts, random));
        if self.deadline(open.step).is_some_and(|deadline| deadline <= start) {
            return Ok(false);
        }
        let mut task = match self.task(open.step, work, open.item) {
            Ok(task) => task,
            Err(NoValue::NotRead) => return Err(NotRead),
            // The first attempt had a task, and what it depends on has not changed.
            Err(_) => return Ok(false),
        };
        task.when = When::At(start);
        let reference = self.submit(open.step, open.item, false);
        self.effects.submits.push(StepTask { reference, step: open.step, item: open.item, undo: false, task });
        Ok(true)
    }

    /// Returns the number of attempts of a step, or of one of its items, that have ended.
    fn attempts_of(&self, open: Open) -> u32 {
        let Some(record) = self.state.steps.get(open.step) else { return 0 };
        match (open.item, &record.batch) {
            (Some(item), Some(batch)) => batch.items.get(item as usize).map_or(0, |item| item.attempts),
            _ => record.attempts,
        }
    }
}

/// Returns a number that differs between runs and between attempts, so that their delays differ. It
/// is the finaliser of SplitMix64.
fn spread(run: i64, reference: u64) -> u64 {
    let mut number = run.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ reference;
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
