//! The names of expressions, as the state of a run gives them values.

use std::sync::Arc;

use onward_store::TaskId;

use super::{NotRead, Turn};
use crate::workflow::expression::{Lookup, Path, Root, Scope, StepField, Unfinished, Value};
use crate::workflow::run::state::batch::{Batch, Item};
use crate::workflow::run::state::json::parsed;
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::run::state::{StepRecord, StepResult};
use crate::workflow::template::{Step, StepAction};

/// The reason why an evaluation in a turn has no value.
#[derive(Debug)]
pub(super) enum NoValue {
    /// Some results have to be read first.
    NotRead,
    /// The step cannot continue.
    Failed(String),
    /// An expression failed.
    Expression { message: String, field: String, path: Path },
}

impl From<NotRead> for NoValue {
    fn from(_: NotRead) -> Self {
        Self::NotRead
    }
}

impl NoValue {
    /// Makes the trouble of a field whose evaluation has no value.
    pub(super) fn of(field: &str, unfinished: Unfinished) -> Self {
        match unfinished {
            Unfinished::Needs(_) => Self::NotRead,
            Unfinished::Failed(error) => {
                Self::Expression { message: error.to_string(), field: field.to_owned(), path: error.path }
            }
        }
    }
}

/// The names of an expression in a turn.
pub(super) struct Names<'t, 'a> {
    pub(super) turn: &'t Turn<'a>,
    pub(super) item: Option<(u32, Value)>,
}

impl Scope for Names<'_, '_> {
    fn root(&self, root: Root) -> Option<Value> {
        let context = self.turn.context;
        match root {
            Root::Input => Some(context.input.clone()),
            Root::Vars => Some(context.vars.clone()),
            Root::Run => Some(context.run.clone()),
            Root::Steps => None,
            Root::Item => self.item.as_ref().map(|(_, item)| item.clone()),
            Root::Index => self.item.as_ref().map(|(index, _)| Value::Int(i64::from(*index))),
        }
    }

    fn step(&self, name: &str, field: StepField) -> Lookup {
        let template = &self.turn.context.template;
        let Some(number) = template.number(name) else { return Lookup::Absent };
        let (Some(step), Some(record)) = (template.steps.get(number), self.turn.state.steps.get(number)) else {
            return Lookup::Absent;
        };
        self.turn.field(number, step, record, field)
    }
}

impl<'a> Turn<'a> {
    /// Returns the names of expressions without an item.
    pub(super) fn names(&self) -> Names<'_, 'a> {
        Names { turn: self, item: None }
    }

    fn field(&self, number: usize, step: &Step, record: &StepRecord, field: StepField) -> Lookup {
        let has_items = matches!(&step.action, StepAction::Work(work) if work.each.is_some());
        match field {
            StepField::State => Lookup::Found(record.state.as_str().into()),
            StepField::Result => self.result_of(record).map_or(Lookup::NotRead, Lookup::Found),
            StepField::Error => Lookup::Found(record.error.as_deref().map_or(Value::Null, error_value)),
            StepField::Count if has_items => {
                Lookup::Found(Value::Int(record.batch.as_ref().map_or(0, |batch| i64::from(batch.count))))
            }
            StepField::Failed if has_items => self.failed_items(number, record).map_or(Lookup::NotRead, Lookup::Found),
            StepField::Count | StepField::Failed => Lookup::Absent,
        }
    }

    /// Returns the result of a step; null if it has none.
    pub(super) fn result_of(&self, record: &StepRecord) -> Result<Value, NotRead> {
        match (&record.result, &record.batch, record.task) {
            (StepResult::Kept(result), ..) => Ok(result.value().clone()),
            (StepResult::None, Some(batch), _) if record.state == StepState::Completed => self.results_of_items(batch),
            (StepResult::Omitted, _, Some(task)) => self.read(task),
            _ => Ok(Value::Null),
        }
    }

    fn results_of_items(&self, batch: &Batch) -> Result<Value, NotRead> {
        // Every item is read before the first missing result is reported, so that one read fetches
        // all of them.
        let results: Vec<_> = batch.items.iter().map(|item| self.result_of_item(item)).collect();
        results.into_iter().collect()
    }

    fn result_of_item(&self, item: &Item) -> Result<Value, NotRead> {
        match (item.state, &item.result, item.task) {
            (StepState::Completed, Some(result), _) => Ok(result.value().clone()),
            (StepState::Completed, None, Some(task)) if item.is_omitted => self.read(task),
            _ => Ok(Value::Null),
        }
    }

    fn failed_items(&self, number: usize, record: &StepRecord) -> Result<Value, NotRead> {
        let Some(batch) = &record.batch else { return Ok(Value::List([].into_iter().collect())) };
        let is_bad = |item: &Item| item.state.is_bad_or_cancelled();
        let bad = (0..batch.count).zip(batch.items.iter()).filter(|(_, item)| is_bad(item));
        bad.map(|(index, item)| {
            let fields = [
                ("index", Value::Int(i64::from(index))),
                ("item", self.item(number, index)?),
                ("error", item.error.as_deref().map_or(Value::Null, error_value)),
            ];
            Ok(fields.into_iter().map(|(name, value)| (Arc::<str>::from(name), value)).collect::<Value>())
        })
        .collect()
    }

    /// Reads the result of a task.
    pub(super) fn read(&self, task: TaskId) -> Result<Value, NotRead> {
        match &self.arrived {
            Some((arrived, result)) if *arrived == task => return Ok(result.value().clone()),
            _ => {}
        }
        self.results.result(task).map(parsed).ok_or_else(|| {
            self.needed.borrow_mut().insert(task);
            NotRead
        })
    }
}

fn error_value(message: &str) -> Value {
    [(Arc::from("message"), Value::from(message))].into_iter().collect()
}
