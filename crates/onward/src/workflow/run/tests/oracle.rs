//! The recursive specification of the join rule, which knows no waves.

use std::collections::BTreeMap;

use onward_store::TaskState;

use super::super::StepState;
use crate::workflow::template::{Condition, Dependency, Step, StepAction, Template};

/// The states in which the steps of a run end under `finish`, if the task of each step ends as
/// `ends` says.
pub(super) struct Oracle<'a> {
    pub(super) template: &'a Template,
    pub(super) ends: &'a BTreeMap<String, TaskState>,
}

impl Oracle<'_> {
    pub(super) fn state(&self, step: &Step) -> StepState {
        let verdicts: Vec<&str> = step.depends_on.iter().map(|dependency| self.verdict(step, *dependency)).collect();
        if verdicts.contains(&"skip") {
            return StepState::Skipped;
        }
        if verdicts.contains(&"never") {
            return StepState::Unreached;
        }
        if !verdicts.is_empty() && verdicts.iter().all(|verdict| *verdict == "void") {
            return StepState::Skipped;
        }
        match step.condition.as_ref().map(|condition| condition.source()) {
            Some("1 > 2") => StepState::Skipped,
            Some("1 / 0 > 1") => StepState::Failed,
            _ => self.end(step),
        }
    }

    /// Returns the end of a step that starts.
    fn end(&self, step: &Step) -> StepState {
        match &step.action {
            StepAction::Value(_) | StepAction::Wait(_) => StepState::Completed,
            StepAction::Fail(_) => StepState::Failed,
            StepAction::Signal(signal) if signal.otherwise.is_some() => StepState::Completed,
            StepAction::Signal(_) => StepState::Failed,
            // All items end in one way, and one of three may end badly.
            StepAction::Work(work) if work.each.is_some() => match self.ends[&step.name] {
                TaskState::Completed => StepState::Completed,
                _ => StepState::Dead,
            },
            StepAction::Work(_) => match self.ends[&step.name] {
                TaskState::Completed => StepState::Completed,
                TaskState::Failed => StepState::Failed,
                TaskState::Expired => StepState::Expired,
                TaskState::Cancelled => StepState::Cancelled,
                _ => StepState::Dead,
            },
        }
    }

    fn verdict(&self, step: &Step, dependency: Dependency) -> &'static str {
        let needed = &self.template.steps[dependency.step];
        let state = self.state(needed);
        let is_good = state == StepState::Completed || state.is_bad() && needed.is_forgiven;
        let is_lost = matches!(state, StepState::Cancelled | StepState::Unreached);
        match dependency.condition {
            Condition::Ended => "yes",
            Condition::Failed => {
                if state.is_bad() {
                    "yes"
                } else {
                    "skip"
                }
            }
            Condition::Completed if is_good => "yes",
            Condition::Completed if state == StepState::Skipped => "void",
            Condition::Completed => "never",
            Condition::Chosen if state.is_bad() && needed.is_forgiven => "skip",
            Condition::Chosen if state.is_bad() || is_lost => "never",
            Condition::Chosen if state == StepState::Completed && self.is_chosen(needed, step) => "yes",
            Condition::Chosen => "skip",
        }
    }

    /// Returns true if a step chooses another: tasks choose the first that they can, values none.
    fn is_chosen(&self, chooser: &Step, step: &Step) -> bool {
        let first = chooser.chooses.first().map(|first| &self.template.steps[*first].name);
        matches!(chooser.action, StepAction::Work(_)) && first == Some(&step.name)
    }
}
