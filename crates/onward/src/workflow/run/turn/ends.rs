//! Reports of tasks that ended.

use onward_store::{TaskId, TaskState};

use super::{End, NotRead, Turn, cut, number};
use crate::workflow::expression::Value;
use crate::workflow::run::bounds::{RESULT_KEPT, RESULTS_KEPT};
use crate::workflow::run::decision::ReportedResult;
use crate::workflow::run::schemas;
use crate::workflow::run::state::event::{RunEvent, TaskResult};
use crate::workflow::run::state::json::Json;
use crate::workflow::run::state::references::Open;
use crate::workflow::run::state::step_state::StepState;

/// The report of a task that ended.
pub(super) struct Report {
    pub(super) task: TaskId,
    pub(super) state: TaskState,
    pub(super) result: ReportedResult,
    pub(super) error: Option<String>,
    pub(super) attempts: u32,
}

impl Turn<'_> {
    /// Processes a report. A report of a reference that is not open changes nothing.
    pub(super) fn process_end(&mut self, reference: u64, report: Report) -> Result<bool, NotRead> {
        let Some(open) = self.state.open.get(reference) else { return Ok(false) };
        let Report { task, state: report_state, result, error, attempts } = report;
        if let ReportedResult::Value(bytes) = &result {
            self.arrived = Some((task, Json::new(bytes.clone())));
        }
        let mut end = End::new(StepState::of_task(report_state));
        if end.state == StepState::Completed {
            end = self.judge_result(open, task, &result)?;
        } else {
            end.error = Some(cut(error.unwrap_or_else(|| format!("the task ended as {report_state}"))));
        }
        let result = self.kept_result(open, end.state, &result);
        let (state, error) = (end.state, end.error.clone());
        self.record(RunEvent::TaskEnded { at: self.at(), reference, task: task.0, state, result, error, attempts });
        let is_reported = report_state != TaskState::Completed;
        if !(is_reported && self.try_again(open, state)?) {
            self.ended(open, end)?;
        }
        Ok(true)
    }

    /// Processes the report that a task was not inserted: the step failed, and had no effect.
    pub(super) fn process_not_started(&mut self, reference: u64, existing: TaskId) -> Result<bool, NotRead> {
        let Some(open) = self.state.open.get(reference) else { return Ok(false) };
        let error = format!("task {existing} has the key of this step; wait for its end, or use another key");
        self.record(RunEvent::NotStarted { at: self.at(), reference, existing: existing.0, error: error.clone() });
        self.ended(open, End::bad(StepState::Failed, error))?;
        Ok(true)
    }

    fn ended(&mut self, open: Open, end: End) -> Result<(), NotRead> {
        match open {
            Open { is_undo: true, .. } => self.undo_task_ended(open.step),
            Open { item: Some(_), .. } => self.fill(open.step),
            Open { item: None, .. } => self.end_step(open.step, end),
        }
    }

    /// Returns the end of a step or an item whose task completed: dead if the result does not
    /// match.
    fn judge_result(&self, open: Open, task: TaskId, result: &ReportedResult) -> Result<End, NotRead> {
        if open.is_undo || !self.has_rules(open) {
            return Ok(End::new(StepState::Completed));
        }
        let value = match result {
            ReportedResult::None => Value::Null,
            ReportedResult::Value(_) | ReportedResult::Omitted { .. } => self.read(task)?,
        };
        let checked = match open.item {
            None => self.check_result(open.step, &value),
            Some(_) => self.check_schema(open.step, &value).map(|()| None),
        };
        Ok(match checked {
            Ok(chosen) => End { chosen, ..End::new(StepState::Completed) },
            Err(fault) => End::bad(StepState::Dead, fault),
        })
    }

    /// Returns true if not every result of a step fits.
    fn has_rules(&self, open: Open) -> bool {
        let has_schema = self.context.schemas.of(open.step).is_some_and(|schemas| schemas.result.is_some());
        has_schema || self.step(open.step).is_some_and(|step| !step.chooses.is_empty())
    }

    /// Checks the result of a step, and returns the steps that it chose.
    ///
    /// # Errors
    /// If the result does not fit `result_schema`, or chooses a step outside `chooses`.
    pub(super) fn check_result(&self, step: usize, value: &Value) -> Result<Option<Vec<u32>>, String> {
        self.check_schema(step, value)?;
        let Some(step) = self.step(step).filter(|step| !step.chooses.is_empty()) else { return Ok(None) };
        let chosen: Result<Vec<u32>, String> = chosen_names(value)?
            .into_iter()
            .map(|name| {
                let found =
                    self.context.template.number(name).filter(|found| step.chooses.binary_search(found).is_ok());
                found.map(number).ok_or_else(|| self.no_choice(&step.chooses, name))
            })
            .collect();
        chosen.map(Some)
    }

    fn check_schema(&self, step: usize, value: &Value) -> Result<(), String> {
        let schema = self.context.schemas.of(step).and_then(|schemas| schemas.result.as_ref());
        schemas::check(schema, value).map_err(|fault| format!("the result does not fit `result_schema`: {fault}"))
    }

    fn no_choice(&self, chooses: &[usize], name: &str) -> String {
        let names = chooses.iter().filter_map(|step| self.step(*step)).map(|step| format!("`{}`", step.name));
        let names = names.collect::<Vec<_>>().join(", ");
        format!("the step chose `{}`, and it chooses among {names}", onward_store::text::Shown(name))
    }

    /// Returns a result as the history has it.
    fn kept_result(&self, open: Open, state: StepState, result: &ReportedResult) -> Option<TaskResult> {
        if state != StepState::Completed || open.is_undo {
            return None;
        }
        match (result, &self.arrived) {
            (ReportedResult::Value(bytes), Some((_, result)))
                if bytes.len() <= RESULT_KEPT && self.state.kept + bytes.len() <= RESULTS_KEPT =>
            {
                Some(TaskResult::Kept { result: result.clone() })
            }
            (ReportedResult::Value(bytes), _) => Some(TaskResult::Omitted { bytes: bytes.len() as u64 }),
            (ReportedResult::Omitted { bytes }, _) => Some(TaskResult::Omitted { bytes: *bytes }),
            (ReportedResult::None, _) => None,
        }
    }
}

/// Returns the names of a choice: one, a list of them, or a map with such under `chosen`.
fn chosen_names(value: &Value) -> Result<Vec<&str>, String> {
    let wrong = || {
        let given = value.with_article();
        format!("a step that chooses has the name of a step, a list of names or {{chosen: …}} as result, not {given}")
    };
    let chosen = value.as_map().map_or(Some(value), |map| map.get("chosen")).ok_or_else(wrong)?;
    match chosen {
        Value::Text(name) => Ok(vec![name]),
        Value::List(names) => names.iter().map(|name| name.as_text().ok_or_else(wrong)).collect(),
        _ => Err(wrong()),
    }
}
