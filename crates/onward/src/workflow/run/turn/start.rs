//! The start of a step.

use jiff::SignedDuration;
use onward_store::Timestamp;
use std::time::Duration;

use super::places::Part;
use super::scope::NoValue;
use super::{End, NotRead, Turn, number};
use crate::workflow::expression::{Value, parse_duration};
use crate::workflow::run::decision::StepTask;
use crate::workflow::run::state::event::RunEvent;
use crate::workflow::run::state::json::Json;
use crate::workflow::run::state::reason::Reason;
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::template::{Step, StepAction, TextTemplate, ValueTemplate, Wait, Work};

impl Turn<'_> {
    /// Starts a step whose dependencies are satisfied, unless its `if` is false.
    pub(super) fn start(&mut self, number: usize) -> Result<(), NotRead> {
        let Some(step) = self.step(number) else { return Ok(()) };
        match self.condition(step) {
            Ok(true) => {}
            Ok(false) => return self.end_step(number, End::because(StepState::Skipped, Reason::Condition)),
            Err(trouble) => return self.fail(number, trouble),
        }
        match (step.after, &step.action) {
            // The store delays a task itself.
            (None, _) | (_, StepAction::Work(_)) => self.begin(number),
            (Some(after), _) => {
                self.wait(number, Some(self.now.plus(after)), true, None);
                Ok(())
            }
        }
    }

    fn condition(&self, step: &Step) -> Result<bool, NoValue> {
        let Some(condition) = &step.condition else { return Ok(true) };
        let value = condition.evaluate_condition(&self.names(), &mut self.budget.borrow_mut());
        value.map_err(|error| NoValue::of("if", error))
    }

    /// Begins the action of a step: its task, timer, signal or question.
    pub(super) fn begin(&mut self, number: usize) -> Result<(), NotRead> {
        let Some(step) = self.step(number) else { return Ok(()) };
        match &step.action {
            StepAction::Work(work) if work.each.is_some() => self.begin_batch(number, work),
            StepAction::Work(work) => self.begin_work(number, work),
            StepAction::Wait(wait) => match self.moment(wait) {
                Ok(until) => {
                    self.wait(number, Some(until), false, None);
                    Ok(())
                }
                Err(trouble) => self.fail(number, trouble),
            },
            StepAction::Signal(signal) => self.begin_signal(number, step, signal),
            StepAction::Value(value) => match self.value("value", value) {
                Ok(value) => self.complete(number, Json::of(value)),
                Err(trouble) => self.fail(number, trouble),
            },
            StepAction::Fail(message) => match self.text("fail", message) {
                Ok(message) => self.end_step(number, End::bad(StepState::Failed, message)),
                Err(trouble) => self.fail(number, trouble),
            },
        }
    }

    /// Evaluates a value without an item.
    pub(super) fn value(&self, field: &str, template: &ValueTemplate) -> Result<Value, NoValue> {
        let value = template.evaluate(&self.names(), &mut self.budget.borrow_mut());
        value.map_err(|error| NoValue::of(field, error))
    }

    /// Evaluates a text without an item.
    pub(super) fn text(&self, field: &str, template: &TextTemplate) -> Result<String, NoValue> {
        let text = template.evaluate_text(&self.names(), &mut self.budget.borrow_mut());
        text.map(|text| text.to_string()).map_err(|error| NoValue::of(field, error))
    }

    /// Ends a step that has an expression which failed.
    pub(super) fn fail(&mut self, step: usize, trouble: NoValue) -> Result<(), NotRead> {
        let message = self.message(Part::Step(step), trouble)?;
        self.end_step(step, End::bad(StepState::Failed, message))
    }

    /// Completes a step with a result of its own, if the result matches its schema.
    pub(super) fn complete(&mut self, step: usize, result: Json) -> Result<(), NotRead> {
        let end = match self.check_result(step, result.value()) {
            Ok(chosen) => End { result: Some(result), chosen, ..End::new(StepState::Completed) },
            Err(fault) => End::bad(StepState::Dead, fault),
        };
        self.end_step(step, end)
    }

    pub(super) fn wait(&mut self, step: usize, until: Option<Timestamp>, is_delay: bool, title: Option<String>) {
        let until = until.map(Timestamp::as_microseconds);
        self.record(RunEvent::StepWaits { step: number(step), until, is_delay, title });
    }

    fn begin_work(&mut self, step: usize, work: &Work) -> Result<(), NotRead> {
        match self.task(step, work, None) {
            Ok(task) => {
                let reference = self.submit(step, None, false);
                self.effects.submits.push(StepTask { reference, step, item: None, undo: false, task });
                Ok(())
            }
            Err(trouble) => self.fail(step, trouble),
        }
    }

    /// Records a submission, and returns its reference.
    pub(super) fn submit(&mut self, step: usize, item: Option<u32>, is_undo: bool) -> u64 {
        let reference = self.state.last_reference + 1;
        self.record(RunEvent::StepSubmitted { step: number(step), reference, item, is_undo });
        reference
    }

    /// Returns the moment at which a timer ends.
    fn moment(&self, wait: &Wait) -> Result<Timestamp, NoValue> {
        match wait {
            Wait::Time(duration) => Ok(self.now.plus(*duration)),
            Wait::Text(text) => {
                let value = text.evaluate(&self.names(), &mut self.budget.borrow_mut());
                let duration = duration(&value.map_err(|error| NoValue::of("wait", error))?)?;
                // A wait for a time that is over ends at once.
                Ok(self.now.plus(Duration::try_from(duration).unwrap_or_default()))
            }
            Wait::Until(until) => {
                let value = until.evaluate(&self.names(), &mut self.budget.borrow_mut());
                timestamp(&value.map_err(|error| NoValue::of("wait.until", error))?)
            }
        }
    }
}

fn duration(value: &Value) -> Result<SignedDuration, NoValue> {
    match value {
        Value::Duration(duration) => Ok(*duration),
        Value::Text(text) => parse_duration(text).map_err(|error| NoValue::Failed(format!("{error}. In wait"))),
        other => Err(NoValue::Failed(format!("`wait` is a duration, not {}", other.with_article()))),
    }
}

fn timestamp(value: &Value) -> Result<Timestamp, NoValue> {
    let wrong = |other: &Value| {
        let given = other.with_article();
        NoValue::Failed(format!("`wait.until` is a timestamp, not {given}; write it as timestamp(…)"))
    };
    match value {
        Value::Timestamp(moment) => Ok(Timestamp::from_microseconds(moment.as_microsecond())),
        Value::Text(text) => text.parse().map_err(|_| wrong(value)),
        other => Err(wrong(other)),
    }
}
