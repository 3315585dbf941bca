//! The actions that are allowed in each state of a step and a run.

use onward_store::text::Shown;

use super::number;
use crate::workflow::nearest::did_you_mean;
use crate::workflow::run::context::RunContext;
use crate::workflow::run::decision::ActionKind;
use crate::workflow::run::state::RunState;
use crate::workflow::run::state::event::TakenAction;
use crate::workflow::run::state::phase::Phase;
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::run::state::undo_state::UndoState;

/// Checks that an action is allowed, and returns it as the history has it.
///
/// # Errors
/// If it is not. The message says what is possible instead.
pub(crate) fn check_action(context: &RunContext, state: &RunState, action: &ActionKind) -> Result<TakenAction, String> {
    Check { context, state }.action(action)
}

/// A rule that allows an action on a step.
type Allowed<'a> = fn(&Check<'a>, usize) -> bool;

/// The state that an action is checked against.
struct Check<'a> {
    context: &'a RunContext,
    state: &'a RunState,
}

impl Check<'_> {
    fn action(&self, action: &ActionKind) -> Result<TakenAction, String> {
        match action {
            ActionKind::Retry { steps } if steps.is_empty() => self.retry_all(),
            ActionKind::Retry { steps } => {
                let steps = steps.iter().map(|step| self.step("retry", step, Self::may_retry));
                steps.collect::<Result<_, _>>().map(|steps| TakenAction::Retry { steps })
            }
            ActionKind::Reset { step } => {
                self.step("reset", step, Self::may_reset).map(|step| TakenAction::Reset { step })
            }
            ActionKind::Resolve { step } => {
                self.step("resolve", step, Self::may_resolve).map(|step| TakenAction::Resolve { step })
            }
            ActionKind::Complete { step, .. } => {
                self.step("complete", step, Self::may_complete).map(|step| TakenAction::Complete { step })
            }
            ActionKind::Skip { step } => self.step("skip", step, Self::may_skip).map(|step| TakenAction::Skip { step }),
            ActionKind::Cancel { undo } if self.may_cancel(*undo) => Ok(TakenAction::Cancel { undo: *undo }),
            ActionKind::Undo if self.may_undo() => Ok(TakenAction::Undo),
            ActionKind::Cancel { .. } => Err(self.refused_of_run("cancel")),
            ActionKind::Undo => Err(self.refused_of_run("undo")),
        }
    }

    /// Returns the number of a step, if an action on it is allowed.
    fn step(&self, action: &str, name: &str, allowed: fn(&Self, usize) -> bool) -> Result<u32, String> {
        let template = &self.context.template;
        match template.number(name) {
            Some(step) if allowed(self, step) => Ok(number(step)),
            Some(step) => Err(self.refused_of_step(action, name, step)),
            None => {
                let meant = did_you_mean(name, template.steps.iter().map(|step| step.name.as_str()));
                Err(format!("the run has no step `{}`{meant}", Shown(name)))
            }
        }
    }

    fn retry_all(&self) -> Result<TakenAction, String> {
        let steps: Vec<u32> = (0..self.state.steps.len()).filter(|step| self.may_retry(*step)).map(number).collect();
        // A run whose own result failed is tried again without a step.
        let is_own = self.is_stopped() && self.state.error.is_some() && !self.state.has_undo_begun;
        if steps.is_empty() && !is_own { Err(self.refused_of_run("retry")) } else { Ok(TakenAction::Retry { steps }) }
    }

    /// Returns true if the run has stopped, and has not completed.
    fn is_stopped(&self) -> bool {
        matches!(self.state.phase, Phase::Held | Phase::Failed | Phase::Dead | Phase::Cancelled)
    }

    /// Returns true if the run has stopped, and no part of it is undone.
    fn may_go_on(&self) -> bool {
        self.is_stopped() && !self.state.has_undo_begun
    }

    /// Returns true if the undo of a step failed, and the run is held for it.
    fn is_undo_failed(&self, step: usize) -> bool {
        self.state.phase == Phase::Held && self.state.undo_of(step) == UndoState::Failed
    }

    fn may_retry(&self, step: usize) -> bool {
        self.is_undo_failed(step) || self.may_go_on() && self.state.step_state(step).is_bad_or_cancelled()
    }

    fn may_reset(&self, step: usize) -> bool {
        let graph = &self.context.template.graph;
        let is_active = |other: usize| self.state.step_state(other).is_active();
        let is_open_behind =
            || (0..self.state.steps.len()).any(|other| is_active(other) && graph.is_ancestor(step, other));
        let may_go_on = self.may_go_on() || self.state.phase == Phase::Running && !is_open_behind();
        self.state.step_state(step).is_ended() && may_go_on
    }

    fn may_resolve(&self, step: usize) -> bool {
        let chooses = self.context.template.steps.get(step).is_some_and(|step| !step.chooses.is_empty());
        let may_resolve = self.may_go_on() && self.state.step_state(step).is_bad_or_cancelled() && !chooses;
        self.is_undo_failed(step) || may_resolve
    }

    fn may_complete(&self, step: usize) -> bool {
        let state = self.state.step_state(step);
        self.may_mend() && (state.is_bad_or_cancelled() || state == StepState::Waiting)
    }

    fn may_skip(&self, step: usize) -> bool {
        let state = self.state.step_state(step);
        let is_open = matches!(state, StepState::Pending | StepState::Waiting);
        self.may_mend() && (state.is_bad_or_cancelled() || is_open)
    }

    fn may_mend(&self) -> bool {
        self.state.phase == Phase::Running || self.may_go_on()
    }

    /// Returns true if the run can be cancelled. One that is half undone cannot end.
    fn may_cancel(&self, undo: bool) -> bool {
        let is_half_undone = self.state.phase == Phase::Held && self.state.has_undo_begun;
        let is_asked = self.state.is_cancelled && (self.state.wants_undo || !undo);
        !self.state.phase.is_ended() && !is_half_undone && !is_asked
    }

    fn may_undo(&self) -> bool {
        self.may_go_on()
    }

    fn refused_of_step(&self, action: &str, name: &str, step: usize) -> String {
        let actions: [(&str, Allowed<'_>); 5] = [
            ("retry", Self::may_retry),
            ("reset", Self::may_reset),
            ("resolve", Self::may_resolve),
            ("complete", Self::may_complete),
            ("skip", Self::may_skip),
        ];
        let possible = actions.into_iter().filter(|(_, allowed)| allowed(self, step)).map(|(name, _)| name);
        let state = self.state.step_state(step).as_str();
        format!("`{action}` is not possible: step `{name}` is {state} and {}", self.with_possible(possible))
    }

    fn refused_of_run(&self, action: &str) -> String {
        let may_retry = (0..self.state.steps.len()).any(|step| self.may_retry(step));
        let actions = [("retry", may_retry), ("cancel", self.may_cancel(false)), ("undo", self.may_undo())];
        let possible = actions.into_iter().filter(|(_, is_allowed)| *is_allowed).map(|(name, _)| name);
        format!("`{action}` is not possible: {}", self.with_possible(possible))
    }

    /// Returns the state of the run, and what is possible in it.
    fn with_possible<'s>(&self, possible: impl Iterator<Item = &'s str>) -> String {
        let phase = self.state.phase.as_str();
        let undone = if self.state.has_undo_begun { ", and its undo has begun" } else { "" };
        match possible.collect::<Vec<_>>().as_slice() {
            [] => format!("the run is {phase}{undone}; nothing of the kind is possible now"),
            possible => format!("the run is {phase}{undone}; possible are {}", possible.join(", ")),
        }
    }
}
