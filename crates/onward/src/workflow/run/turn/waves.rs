//! Waves: pending steps are decided until nothing changes.

use std::cmp::Reverse;

use super::verdict::{Verdict, verdict};
use super::{End, NotRead, Turn, number};
use crate::workflow::run::state::event::RunEvent;
use crate::workflow::run::state::phase::Phase;
use crate::workflow::run::state::reason::Reason;
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::template::{Condition, Dependency, OnFailure};

/// The decision about a pending step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepDecision {
    Wait,
    Skip(Reason),
    Unreached(Reason),
    /// Everything that the step needs is there. Its `if` is evaluated when it starts.
    Ready,
}

impl Turn<'_> {
    /// Decides about pending steps until nothing changes.
    pub(super) fn decide_pending_steps(&mut self) -> Result<(), NotRead> {
        self.stop_if_bad()?;
        loop {
            let candidates = self.candidates();
            if candidates.is_empty() {
                return Ok(());
            }
            let judged: Vec<_> = candidates.into_iter().map(|step| (step, self.judge(step))).collect();
            // A start evaluates expressions on ancestors only. They have ended, so the states at
            // the start of the wave are those that it reads. All results that are to be read are
            // found together.
            let starts = judged.into_iter().map(|(step, judgement)| self.decide(step, judgement));
            let starts: Vec<_> = starts.collect();
            starts.into_iter().collect::<Result<(), NotRead>>()?;
            self.stop_if_bad()?;
        }
    }

    /// Returns the pending steps that may be decided now, in the order in which they start.
    fn candidates(&mut self) -> Vec<usize> {
        let changed = std::mem::take(&mut self.changed);
        let mut found = Vec::new();
        if std::mem::take(&mut self.judges_all) {
            found.extend((0..self.state.steps.len()).filter(|step| self.is_pending(*step)));
        } else {
            for &step in &changed {
                let dependents = self.context.template.graph.dependents(step).iter();
                found.extend(dependents.filter(|dependent| self.may_decide(**dependent, step)));
            }
        }
        let graph = &self.context.template.graph;
        found.sort_unstable_by_key(|step| (Reverse(graph.longest_below(*step)), *step));
        found.dedup();
        found
    }

    fn is_pending(&self, step: usize) -> bool {
        self.state.step_state(step) == StepState::Pending
    }

    /// Returns true if the end of `changed` may decide a step. While other dependencies wait, only
    /// *skip* does.
    fn may_decide(&self, step: usize, changed: usize) -> bool {
        let Some(record) = self.state.steps.get(step).filter(|record| record.state == StepState::Pending) else {
            return false;
        };
        if record.waits == 0 {
            return true;
        }
        let dependencies = self.step(step).map_or(&[][..], |step| &step.depends_on);
        let place = dependencies.binary_search_by_key(&changed, |dependency| dependency.step);
        place.is_ok_and(|place| self.verdict(step, dependencies[place]) == Verdict::Skip)
    }

    fn verdict(&self, step: usize, dependency: Dependency) -> Verdict {
        let Some(needed) = self.state.steps.get(dependency.step) else { return Verdict::Never };
        let is_forgiven = self.step(dependency.step).is_some_and(|needed| needed.is_forgiven);
        let is_chosen = needed.chosen.as_ref().is_some_and(|chosen| chosen.contains(&step));
        verdict(dependency.condition, needed.state, is_forgiven, is_chosen)
    }

    /// Decides about a pending step from the present states.
    pub(super) fn judge(&self, step: usize) -> StepDecision {
        if let Some(reason) = self.forbidden(step) {
            return StepDecision::Unreached(reason);
        }
        let dependencies = self.step(step).map_or(&[][..], |step| &step.depends_on);
        let (mut waits, mut never, mut yes) = (false, None, dependencies.is_empty());
        for &dependency in dependencies {
            match self.verdict(step, dependency) {
                // *Skip* comes before *never*: a step that was not chosen does not block one that
                // was.
                Verdict::Skip => return StepDecision::Skip(skip_reason(dependency)),
                Verdict::Wait => waits = true,
                Verdict::Never => never = never.or(Some(dependency.step)),
                Verdict::Yes => yes = true,
                Verdict::Void => {}
            }
        }
        match never {
            _ if waits => StepDecision::Wait,
            Some(step) => StepDecision::Unreached(Reason::Dependency { step: number(step) }),
            None if !yes => StepDecision::Skip(Reason::NothingCame),
            None => StepDecision::Ready,
        }
    }

    /// Returns the reason if the phase of the run does not let a step start.
    fn forbidden(&self, step: usize) -> Option<Reason> {
        if self.state.is_cancelled {
            return Some(Reason::Cancelled);
        }
        let is_stopping = self.state.phase == Phase::Stopping;
        let is_on_path = self.context.template.graph.is_on_failure_path(step);
        (is_stopping && !is_on_path).then_some(Reason::Stopping)
    }

    fn decide(&mut self, step: usize, judgement: StepDecision) -> Result<(), NotRead> {
        match judgement {
            StepDecision::Wait => Ok(()),
            StepDecision::Skip(reason) => self.end_step(step, End::because(StepState::Skipped, reason)),
            StepDecision::Unreached(reason) => self.end_step(step, End::because(StepState::Unreached, reason)),
            StepDecision::Ready => self.start(step),
        }
    }

    /// Stops the run if a step that has just ended is bad and not forgiven.
    fn stop_if_bad(&mut self) -> Result<(), NotRead> {
        let policy = self.context.template.on_failure;
        if self.state.phase != Phase::Running || policy == OnFailure::Finish {
            return Ok(());
        }
        let is_bad = |step: &usize| self.state.step_state(*step).is_bad() && !self.is_forgiven(*step);
        if self.changed.iter().any(is_bad) { self.stop() } else { Ok(()) }
    }

    pub(super) fn is_forgiven(&self, step: usize) -> bool {
        self.step(step).is_some_and(|step| step.is_forgiven)
    }

    /// Stops the run: only steps on a failure path may still start.
    fn stop(&mut self) -> Result<(), NotRead> {
        self.record(RunEvent::PhaseChanged { phase: Phase::Stopping, error: None, result: None });
        self.judges_all = true;
        let context = self.context;
        let is_on_path = |step: usize| context.template.graph.is_on_failure_path(step);
        self.end_waiting(Reason::Stopping, |step| !is_on_path(step))?;
        let single = self.state.open.iter().filter(|(_, open)| open.item.is_none() && !is_on_path(open.step));
        let references: Vec<(u64, usize)> = single.map(|(reference, open)| (reference, open.step)).collect();
        for (reference, step) in references {
            self.withdraw(reference, step)?;
        }
        Ok(())
    }

    /// Ends steps that wait for a moment or a signal.
    pub(super) fn end_waiting(&mut self, reason: Reason, which: impl Fn(usize) -> bool) -> Result<(), NotRead> {
        for step in 0..self.state.steps.len() {
            if self.state.step_state(step) == StepState::Waiting && which(step) {
                self.end_step(step, End::because(StepState::Cancelled, reason))?;
            }
        }
        Ok(())
    }

    /// Takes back a submission if it has not started. One of this turn was never written.
    fn withdraw(&mut self, reference: u64, step: usize) -> Result<(), NotRead> {
        let Some(place) = self.effects.submits.iter().position(|task| task.reference == reference) else {
            self.effects.withdraws.push(reference);
            return Ok(());
        };
        self.effects.submits.remove(place);
        self.record_unsubmitted(reference, StepState::Cancelled, None);
        self.end_step(step, End::because(StepState::Cancelled, Reason::Stopping))
    }

    /// Records the end of a submission that has no task.
    pub(super) fn record_unsubmitted(&mut self, reference: u64, state: StepState, error: Option<String>) {
        self.record(RunEvent::TaskEnded { at: self.at(), reference, task: 0, state, result: None, error, attempts: 0 });
    }
}

fn skip_reason(dependency: Dependency) -> Reason {
    match dependency.condition {
        Condition::Chosen => Reason::NotChosen { by: number(dependency.step) },
        _ => Reason::Dependency { step: number(dependency.step) },
    }
}
