//! The end of a run.

use onward_store::Timestamp;

use super::places::Part;
use super::scope::NoValue;
use super::{NotRead, Turn, cut};
use crate::workflow::expression::Value;
use crate::workflow::run::schemas;
use crate::workflow::run::state::event::RunEvent;
use crate::workflow::run::state::json::Json;
use crate::workflow::run::state::phase::Phase;
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::template::OnFailure;

impl Turn<'_> {
    /// Ends, undoes or holds the run once nothing of it is open.
    pub(super) fn end_if_idle(&mut self) -> Result<(), NotRead> {
        match self.state.phase {
            Phase::Undoing => self.continue_undo(),
            Phase::Running | Phase::Stopping if self.state.active == 0 && self.state.open.len() == 0 => self.stopped(),
            _ => Ok(()),
        }
    }

    /// Ends, undoes or holds a run of which no step is open.
    fn stopped(&mut self) -> Result<(), NotRead> {
        if self.state.pending > 0 {
            // The join rule makes this impossible. If it happened anyway, a run with a lost step
            // would look completed, so it is an error.
            let error =
                format!("{} steps are pending although nothing is open; report this as a bug", self.state.pending);
            self.change_phase(Phase::Dead, Some(error), None);
            return Ok(());
        }
        let mut outcome = self.outcome();
        let mut error = None;
        if outcome == Phase::Completed {
            match self.result() {
                Ok(result) => {
                    self.change_phase(Phase::Completed, None, Some(result));
                    return Ok(());
                }
                Err(trouble) => {
                    let message = self.message(Part::Run, trouble)?;
                    (outcome, error) = (Phase::Failed, Some(cut(message)));
                }
            }
        }
        self.end_badly(outcome, error)
    }

    fn end_badly(&mut self, outcome: Phase, error: Option<String>) -> Result<(), NotRead> {
        let policy = self.context.template.on_failure;
        let is_policy = policy == OnFailure::Undo && !self.state.is_cancelled;
        if self.state.wants_undo || is_policy {
            self.keep_error(error);
            return self.begin_undo();
        }
        if policy == OnFailure::Hold && !self.state.is_cancelled {
            self.change_phase(Phase::Held, error, None);
            return Ok(());
        }
        self.keep_error(error);
        self.end_run(outcome);
        Ok(())
    }

    /// Keeps a failure of the run itself, so that it decides the outcome later.
    fn keep_error(&mut self, error: Option<String>) {
        if error.is_some() {
            self.change_phase(Phase::Stopping, error, None);
        }
    }

    /// Ends a run that did not complete.
    pub(super) fn end_run(&mut self, outcome: Phase) {
        let error = match outcome {
            Phase::Cancelled => "the run was cancelled".to_owned(),
            _ => self.state.error.as_deref().map_or_else(|| self.failure(), str::to_owned),
        };
        self.change_phase(outcome, Some(cut(error)), None);
    }

    pub(super) fn change_phase(&mut self, phase: Phase, error: Option<String>, result: Option<Json>) {
        self.record(RunEvent::PhaseChanged { phase, error, result });
    }

    /// Returns the phase in which the run ends by the states of its steps.
    pub(super) fn outcome(&self) -> Phase {
        if self.state.is_cancelled {
            return Phase::Cancelled;
        }
        let counting = || self.state.steps.iter().enumerate().filter(|(step, _)| !self.is_forgiven(*step));
        let any = |is: fn(StepState) -> bool| counting().any(|(_, record)| is(record.state));
        if any(|state| state == StepState::Dead) {
            return Phase::Dead;
        }
        let is_cancelled = self.state.steps.iter().any(|record| record.state == StepState::Cancelled);
        let is_failed = self.state.error.is_some() || is_cancelled || any(StepState::is_bad);
        if is_failed { Phase::Failed } else { Phase::Completed }
    }

    /// Returns the message of a run that failed because of its steps: the first of them to end.
    fn failure(&self) -> String {
        let records = self.state.steps.iter().enumerate();
        let ended = |at: Option<Timestamp>| at.unwrap_or(Timestamp::MAX);
        let bad = records.filter(|(step, record)| record.state.is_bad_or_cancelled() && !self.is_forgiven(*step));
        let first = bad.min_by_key(|(step, record)| (record.state == StepState::Cancelled, ended(record.ended), *step));
        let Some((step, record)) = first else { return "the run failed".to_owned() };
        let name = self.step(step).map_or("?", |step| &step.name);
        let state = record.state.as_str();
        match &record.error {
            Some(error) => format!("step `{name}` is {state}: {error}"),
            None => format!("step `{name}` is {state}"),
        }
    }

    /// Returns the result of a completed run.
    fn result(&self) -> Result<Json, NoValue> {
        let template = &self.context.template;
        if !self.context.only.is_empty() {
            // The result of the whole may need steps that did not run.
            return Ok(Json::of(self.results_of(&self.context.only)?));
        }
        let value = match &template.result {
            Some(result) => self.value("result", result)?,
            None => self.results_of(&template.graph.last().collect::<Vec<_>>())?,
        };
        let checked = schemas::check(self.context.schemas.run.as_ref(), &value);
        checked
            .map_err(|fault| NoValue::Failed(format!("the result of the run does not fit `result_schema`: {fault}")))?;
        Ok(Json::of(value))
    }

    /// Returns the result of the only step, or a map of the steps' results.
    fn results_of(&self, last: &[usize]) -> Result<Value, NoValue> {
        let result = |step: &usize| match self.state.steps.get(*step) {
            Some(record) => self.result_of(record),
            None => Ok(Value::Null),
        };
        if let [only] = last {
            return Ok(result(only)?);
        }
        let results: Vec<_> = last.iter().map(|step| result(step).map(|result| (*step, result))).collect();
        let results: Vec<(usize, Value)> = results.into_iter().collect::<Result<_, _>>()?;
        let named = |(step, result)| self.step(step).map(|step| (step.name.as_str().into(), result));
        Ok(results.into_iter().filter_map(named).collect())
    }
}
