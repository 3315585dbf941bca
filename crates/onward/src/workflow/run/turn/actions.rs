//! Manual actions on a run.

use super::allowed::check_action;
use super::{End, NotRead, Turn, number};
use crate::workflow::expression::Value;
use crate::workflow::run::decision::{Action, ActionKind};
use crate::workflow::run::state::event::{RunEvent, TakenAction};
use crate::workflow::run::state::json::Json;
use crate::workflow::run::state::phase::Phase;
use crate::workflow::run::state::reason::Reason;
use crate::workflow::run::state::step_state::StepState;

impl Turn<'_> {
    /// Carries out an action, or records that it was refused.
    pub(super) fn carry_out_action(&mut self, action: Action) -> Result<bool, NotRead> {
        let Action { kind, actor, reason } = action;
        let checked = check_action(self.context, &self.state, &kind).and_then(|taken| {
            let chosen = self.check_completion(&kind)?;
            Ok((taken, chosen))
        });
        let (taken, chosen) = match checked {
            Ok(checked) => checked,
            Err(message) => {
                self.refuse(message, actor);
                return Ok(true);
            }
        };
        self.record(RunEvent::ActionTaken { at: self.at(), action: taken.clone(), actor, reason });
        self.act(taken, &kind, chosen)?;
        Ok(true)
    }

    /// Checks the result with which an action completes a step, and returns what it chooses.
    fn check_completion(&self, kind: &ActionKind) -> Result<Option<Vec<u32>>, String> {
        let ActionKind::Complete { step, result } = kind else { return Ok(None) };
        if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(result) {
            return Err(format!("the result for step `{step}` is no JSON: {error}"));
        }
        let Some(number) = self.context.template.number(step) else { return Ok(None) };
        self.check_result(number, Json::new(result.clone()).value())
    }

    fn act(&mut self, action: TakenAction, kind: &ActionKind, chosen: Option<Vec<u32>>) -> Result<(), NotRead> {
        let is_undo = self.state.has_undo_begun;
        match action {
            TakenAction::Retry { steps } if is_undo => {
                steps.into_iter().for_each(|step| self.record(RunEvent::UndoRetried { step }));
                self.change_phase(Phase::Undoing, None, None);
                Ok(())
            }
            TakenAction::Resolve { step } if is_undo => {
                self.record(RunEvent::UndoEnded { step, error: None });
                self.change_phase(Phase::Undoing, None, None);
                Ok(())
            }
            TakenAction::Retry { steps } => {
                self.run_again(&steps, true);
                Ok(())
            }
            TakenAction::Reset { step } => {
                self.run_again(&[step], false);
                Ok(())
            }
            TakenAction::Resolve { step } => {
                let end = End { result: Some(Json::of(Value::Null)), ..End::new(StepState::Completed) };
                self.end_by_hand(step as usize, end)
            }
            TakenAction::Complete { step } => {
                let result = match kind {
                    ActionKind::Complete { result, .. } => Some(Json::new(result.clone())),
                    _ => None,
                };
                self.end_by_hand(step as usize, End { result, chosen, ..End::new(StepState::Completed) })
            }
            TakenAction::Skip { step } => {
                self.end_by_hand(step as usize, End::because(StepState::Skipped, Reason::Action))
            }
            TakenAction::Cancel { .. } => self.cancel(),
            TakenAction::Undo => self.begin_undo(),
        }
    }

    /// Makes steps pending again, with all behind them.
    fn run_again(&mut self, steps: &[u32], keeps_items: bool) {
        let graph = &self.context.template.graph;
        let is_behind = |step: usize| steps.iter().any(|first| graph.is_ancestor(*first as usize, step));
        let was_running = self.resume();
        for step in 0..self.state.steps.len() {
            let state = self.state.step_state(step);
            let is_first = steps.contains(&number(step));
            let is_lost = !was_running && state == StepState::Unreached;
            if state.is_ended() && (is_first || is_lost || is_behind(step)) {
                self.record(RunEvent::StepPending { step: number(step), keeps_items: keeps_items && is_first });
            }
        }
    }

    /// Ends a step by hand. Steps that could not be reached because of its earlier end are decided
    /// again.
    fn end_by_hand(&mut self, step: usize, end: End) -> Result<(), NotRead> {
        let was_running = self.resume();
        self.end_step(step, end)?;
        let graph = &self.context.template.graph;
        for other in 0..self.state.steps.len() {
            let is_lost = !was_running || graph.is_ancestor(step, other);
            if is_lost && self.state.step_state(other) == StepState::Unreached {
                self.record(RunEvent::StepPending { step: number(other), keeps_items: false });
            }
        }
        Ok(())
    }

    /// Resumes the run. Returns true if it was running.
    fn resume(&mut self) -> bool {
        self.judges_all = true;
        if self.state.phase == Phase::Running {
            return true;
        }
        self.change_phase(Phase::Running, None, None);
        false
    }
}
