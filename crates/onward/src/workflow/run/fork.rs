//! Runs that begin with the results of another run.

use onward_store::TaskId;
use serde::{Deserialize, Serialize};

use super::context::RunContext;
use super::state::batch::{Batch, Item};
use super::state::event::{RunEvent, TaskResult};
use super::state::reason::Reason;
use super::state::step_state::StepState;
use super::state::{RunState, StepRecord, StepResult};
use crate::workflow::nearest::did_you_mean;
use crate::workflow::template::{StepAction, Template};

/// The steps that run in a fork, and the run whose results the other steps have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fork {
    /// The run that is forked. `None` only beside `only`: then the other steps have no results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<TaskId>,
    /// The names of the steps.
    pub(crate) steps: Vec<String>,
    /// True if these steps alone run. Else all run that are behind them or did not complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) only: bool,
}

/// Returns the events that take the steps over that do not run. `template` is that of the new run:
/// steps of both templates are the same if they have the same name.
///
/// # Errors
/// If there is no such step, or a step that alone runs needs one that has no result.
pub(crate) fn plan_fork(
    origin: Option<(&RunContext, &RunState)>,
    template: &Template,
    fork: &Fork,
    at: i64,
) -> Result<Vec<RunEvent>, String> {
    let selected: Vec<usize> = fork.steps.iter().map(|name| number_of(template, name)).collect::<Result<_, _>>()?;
    let mut plan = Plan { origin, template, selected, at, reference: 0, events: Vec::new() };
    if fork.only {
        plan.run_only(fork)?;
    } else {
        plan.run_from();
    }
    Ok(plan.events)
}

fn number_of(template: &Template, name: &str) -> Result<usize, String> {
    template.number(name).ok_or_else(|| {
        let meant = did_you_mean(name, template.steps.iter().map(|step| step.name.as_str()));
        format!("the workflow `{}` has no step `{name}`{meant}", template.name)
    })
}

/// Returns the number of a step as events have it.
fn event_number(step: usize) -> u32 {
    // A template has at most 1000 steps.
    u32::try_from(step).unwrap_or(u32::MAX)
}

/// A plan under way.
struct Plan<'a> {
    origin: Option<(&'a RunContext, &'a RunState)>,
    template: &'a Template,
    selected: Vec<usize>,
    at: i64,
    /// The last reference that was given.
    reference: u64,
    events: Vec<RunEvent>,
}

impl<'a> Plan<'a> {
    /// Takes over what does not depend on a step that runs.
    fn run_from(&mut self) {
        let mut is_taken = vec![false; self.template.steps.len()];
        // Each step comes after those that it depends on.
        for &number in self.template.graph.order() {
            let Some(step) = self.template.steps.get(number) else { continue };
            let runs = |step: usize| !is_taken.get(step).copied().unwrap_or_default();
            let has_to_run = step.depends_on.iter().any(|before| runs(before.step)) || self.selected.contains(&number);
            if !has_to_run && self.can_take(number) {
                is_taken[number] = true;
                self.take(number);
            }
        }
    }

    /// Takes over or leaves out every step that was not selected.
    fn run_only(&mut self, fork: &Fork) -> Result<(), String> {
        for number in 0..self.template.steps.len() {
            if self.selected.contains(&number) {
                continue;
            }
            if self.can_take(number) {
                self.take(number);
                continue;
            }
            if let Some(needs) = self.selected.iter().find(|selected| self.is_before(number, **selected)) {
                return Err(self.no_result(fork, number, *needs));
            }
            let (step, state, reason) = (event_number(number), StepState::Skipped, Some(Reason::NotSelected));
            self.events.push(RunEvent::StepEnded { step, state, result: None, chosen: None, error: None, reason });
        }
        Ok(())
    }

    fn no_result(&self, fork: &Fork, step: usize, needs: usize) -> String {
        let name = |step: usize| self.template.steps.get(step).map_or("?", |step| step.name.as_str());
        let how = match fork.run {
            Some(run) => format!("has not ended in run {run}"),
            None => "has not run".to_owned(),
        };
        let (step, needs) = (name(step), name(needs));
        format!("step `{needs}` needs step `{step}`, which {how}; select `{step}` too, or run the whole workflow first")
    }

    fn is_before(&self, step: usize, other: usize) -> bool {
        self.template.graph.is_ancestor(step, other)
    }

    /// Returns the template, the number and the state of a step in the run that is forked.
    fn record(&self, step: usize) -> Option<(&'a Template, usize, &'a StepRecord)> {
        let ((context, state), name) = (self.origin?, &self.template.steps.get(step)?.name);
        let number = context.template.number(name)?;
        Some((&context.template, number, state.steps.get(number)?))
    }

    /// Returns true if a step has an end that another run can have too. A bad end counts only for
    /// the steps before a selected one: any other step is worth another try.
    fn can_take(&self, step: usize) -> bool {
        let Some((before, number, record)) = self.record(step) else { return false };
        let is_before = || self.selected.iter().any(|selected| self.is_before(step, *selected));
        let has_end = match record.state {
            StepState::Completed | StepState::Skipped => true,
            state => state.is_bad_or_cancelled() && is_before(),
        };
        let is_same_form = has_items(before, number) == has_items(self.template, step);
        has_end && is_same_form && self.chosen(step, before, record).is_some()
    }

    /// Returns the steps that a step chose, in the numbers of this template. Returns `None` if the
    /// step has to choose again.
    fn chosen(&self, step: usize, before: &Template, record: &StepRecord) -> Option<Option<Vec<u32>>> {
        let chooses = self.template.steps.get(step).map_or(&[][..], |step| &step.chooses);
        let Some(chosen) = &record.chosen else {
            let need_not_choose = record.state != StepState::Completed || chooses.is_empty();
            return need_not_choose.then_some(None);
        };
        let number = |old: &usize| {
            let number = self.template.number(&before.steps.get(*old)?.name)?;
            chooses.contains(&number).then(|| event_number(number))
        };
        chosen.iter().map(number).collect::<Option<_>>().map(Some)
    }

    fn take(&mut self, number: usize) {
        let Some((before, _, record)) = self.record(number) else { return };
        let chosen = self.chosen(number, before, record).flatten();
        let step = event_number(number);
        let mut result = None;
        match (&record.batch, &record.result, record.task) {
            (Some(batch), ..) => self.take_items(step, batch),
            // A result that no history keeps is read with its task, also in this run.
            (None, StepResult::Omitted, Some(task)) => {
                let reference = self.submitted(step, None);
                let (at, task, omitted) = (self.at, task.0, Some(TaskResult::Omitted { bytes: 0 }));
                let (state, attempts) = (record.state, record.attempts);
                let ended = RunEvent::TaskEnded { at, reference, task, state, result: omitted, error: None, attempts };
                self.events.push(ended);
            }
            (None, StepResult::Kept(kept), _) => result = Some(kept.clone()),
            _ => {}
        }
        let (state, error) = (record.state, record.error.as_deref().map(str::to_owned));
        self.events.push(RunEvent::StepEnded { step, state, result, chosen, error, reason: Some(Reason::TakenOver) });
        self.events.push(RunEvent::StepTakenOver { step });
    }

    fn take_items(&mut self, step: u32, batch: &Batch) {
        self.events.push(RunEvent::BatchBegan { step, count: batch.count });
        for (index, item) in (0..).zip(batch.items.iter()) {
            let Item { task: Some(task), state, is_omitted, attempts, result, error, .. } = item else { continue };
            let result = match result {
                Some(result) => Some(TaskResult::Kept { result: result.clone() }),
                None => is_omitted.then_some(TaskResult::Omitted { bytes: 0 }),
            };
            let reference = self.submitted(step, Some(index));
            let (at, error) = (self.at, error.as_deref().map(str::to_owned));
            let (task, state, attempts) = (task.0, *state, *attempts);
            self.events.push(RunEvent::TaskEnded { at, reference, task, state, result, error, attempts });
        }
        if batch.is_stopped {
            self.events.push(RunEvent::BatchStopped { step });
        }
    }

    /// Adds the submission of a task that has ended, and returns its reference.
    fn submitted(&mut self, step: u32, item: Option<u32>) -> u64 {
        self.reference += 1;
        let reference = self.reference;
        self.events.push(RunEvent::StepSubmitted { step, reference, item, is_undo: false });
        reference
    }
}

/// Returns true if a step is done once for each of some items.
fn has_items(template: &Template, step: usize) -> bool {
    match template.steps.get(step).map(|step| &step.action) {
        Some(StepAction::Work(work)) => work.each.is_some(),
        _ => false,
    }
}
