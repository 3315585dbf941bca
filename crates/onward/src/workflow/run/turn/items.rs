//! The items of a step with `each`, and their tasks.

use std::sync::Arc;

use super::places::Part;
use super::scope::NoValue;
use super::{End, NotRead, Turn, number};
use crate::workflow::expression::bounds::EXPRESSION_OPERATIONS;
use crate::workflow::expression::{Budget, Expression, Value};
use crate::workflow::run::bounds::EACH_ITEMS;
use crate::workflow::run::decision::StepTask;
use crate::workflow::run::state::event::RunEvent;
use crate::workflow::run::state::json::Json;
use crate::workflow::run::state::reason::Reason;
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::template::{Each, Items, StepAction, Work};

impl<'a> Turn<'a> {
    /// Returns the work of a step, and its items if it has such.
    pub(super) fn work(&self, step: usize) -> Option<&'a Work> {
        match &self.step(step)?.action {
            StepAction::Work(work) => Some(work),
            _ => None,
        }
    }

    fn each(&self, step: usize) -> Option<&'a Each> {
        self.work(step)?.each.as_ref()
    }

    pub(super) fn begin_batch(&mut self, step: usize, work: &Work) -> Result<(), NotRead> {
        let Some(each) = &work.each else { return Ok(()) };
        let count = self.source(step, each).and_then(|source| count(each, &source).map_err(NoValue::Failed));
        match count {
            Ok(0) => self.complete_batch(step, Some(Json::of(Value::List([].into_iter().collect())))),
            Ok(count) => {
                self.record(RunEvent::BatchBegan { step: number(step), count });
                self.fill(step)
            }
            Err(trouble) => self.fail(step, trouble),
        }
    }

    /// Submits items up to the number that may be open, and ends the step after its last item.
    pub(super) fn fill(&mut self, step: usize) -> Result<(), NotRead> {
        let (Some(work), Some(each)) = (self.work(step), self.each(step)) else { return Ok(()) };
        while let Some(item) = self.next_item(step, each) {
            self.submit_item(step, work, item)?;
        }
        self.end_batch(step, each)
    }

    /// Returns the next item to submit, if another may be open.
    fn next_item(&self, step: usize, each: &Each) -> Option<u32> {
        let batch = self.state.steps.get(step)?.batch.as_ref()?;
        if batch.is_closed(each) || batch.open >= each.parallel || self.is_full() {
            return None;
        }
        let is_pending =
            |item: &u32| batch.items.get(*item as usize).is_some_and(|item| item.state == StepState::Pending);
        (batch.next..batch.count).find(is_pending)
    }

    /// Returns true if the turn has submitted as many items as it may. Another turn follows at
    /// once.
    pub(super) fn is_full(&self) -> bool {
        self.effects.submits.len() >= self.room.submits
    }

    fn submit_item(&mut self, step: usize, work: &Work, item: u32) -> Result<(), NotRead> {
        let task = match self.task(step, work, Some(item)) {
            Ok(task) => Ok(task),
            Err(trouble) => Err(self.message(Part::Step(step), trouble)?),
        };
        let reference = self.submit(step, Some(item), false);
        match task {
            Ok(task) => self.effects.submits.push(StepTask { reference, step, item: Some(item), undo: false, task }),
            Err(error) => self.record_unsubmitted(reference, StepState::Failed, Some(error)),
        }
        Ok(())
    }

    fn end_batch(&mut self, step: usize, each: &Each) -> Result<(), NotRead> {
        let Some(batch) = self.state.steps.get(step).and_then(|record| record.batch.as_deref()) else { return Ok(()) };
        if batch.open > 0 || !batch.is_closed(each) || self.state.step_state(step) != StepState::Open {
            return Ok(());
        }
        if batch.is_over(each) {
            let (bad, count) = (batch.bad, batch.count);
            let first = batch.items.iter().find_map(|item| item.error.as_deref()).unwrap_or("without an error");
            let error = format!("{bad} of {count} items ended badly, more than `tolerate` allows; the first: {first}");
            return self.end_step(step, End::bad(StepState::Dead, error));
        }
        if batch.completed + batch.bad < batch.count {
            return self.end_step(step, End::because(StepState::Cancelled, Reason::Cancelled));
        }
        self.complete_batch(step, None)
    }

    fn complete_batch(&mut self, step: usize, result: Option<Json>) -> Result<(), NotRead> {
        self.end_step(step, End { result, ..End::new(StepState::Completed) })
    }

    /// Returns the list of items; of a range, its start, its end and its width.
    fn source(&self, step: usize, each: &Each) -> Result<Value, NoValue> {
        let cached = self.state.steps.get(step).and_then(|record| record.batch.as_ref()).map(|batch| &batch.list.0);
        if let Some(source) = cached.and_then(|cached| cached.get()) {
            return Ok(source.clone());
        }
        if self.budget.try_borrow_mut().is_err() {
            self.prepare_sources(step)?;
        }
        let evaluate = |field: &str, expression: &Expression| {
            let value = match self.budget.try_borrow_mut() {
                Ok(mut budget) => expression.evaluate(&self.names(), &mut budget),
                // An expression that reads `failed` of a step needs its items while it is
                // evaluated.
                Err(_) => expression.evaluate(&self.names(), &mut Budget::new(EXPRESSION_OPERATIONS)),
            };
            value.map_err(|error| NoValue::of(field, error))
        };
        let source = match &each.items {
            Items::List(list) => evaluate("each", list)?,
            Items::Range { from, to, by } => {
                let parts = [("each.from", from), ("each.to", to), ("each.by", by)];
                parts.into_iter().map(|(field, part)| evaluate(field, part)).collect::<Result<Value, NoValue>>()?
            }
        };
        if let Some(cached) = cached {
            return Ok(cached.get_or_init(|| source).clone());
        }
        Ok(source)
    }

    /// Evaluates the items of all steps before a step, in order. Items that depend on the items of
    /// other steps therefore do not nest, however many there are.
    fn prepare_sources(&self, step: usize) -> Result<(), NotRead> {
        let graph = &self.context.template.graph;
        for &before in graph.order().iter().filter(|before| graph.is_ancestor(**before, step)) {
            let has_items = self.state.steps.get(before).is_some_and(|record| record.batch.is_some());
            if let (true, Some(each)) = (has_items, self.each(before))
                && let Err(NoValue::NotRead) = self.source(before, each)
            {
                return Err(NotRead);
            }
        }
        Ok(())
    }

    /// Returns an item.
    pub(super) fn item(&self, step: usize, index: u32) -> Result<Value, NotRead> {
        let Some(each) = self.each(step) else { return Ok(Value::Null) };
        match self.source(step, each) {
            Ok(source) => Ok(item(each, &source, index)),
            Err(NoValue::NotRead) => Err(NotRead),
            // It had a value when the step began, and what it depends on has not changed.
            Err(_) => Ok(Value::Null),
        }
    }
}

/// Returns the number of items.
fn count(each: &Each, source: &Value) -> Result<u32, String> {
    let items = match (&each.items, source.as_list()) {
        (Items::List(_), Some(list)) => list.len() as u128,
        (Items::List(_), None) => return Err(format!("`each` is a list, not {}", source.with_article())),
        (Items::Range { .. }, parts) => {
            let (from, to, by) = range(parts.unwrap_or_default())?;
            if by < 1 {
                return Err(format!("`each.by` is at least 1, not {by}"));
            }
            u128::try_from(to - from).unwrap_or(0).div_ceil(u128::try_from(by).unwrap_or(1))
        }
    };
    match u32::try_from(items) {
        Ok(items) if items as usize <= EACH_ITEMS => Ok(items),
        _ => Err(format!("`each` has {items} items, and a step has at most {EACH_ITEMS}; take wider parts of a range")),
    }
}

fn item(each: &Each, source: &Value, index: u32) -> Value {
    let parts = source.as_list().unwrap_or_default();
    if let Items::List(_) = each.items {
        return parts.get(index as usize).cloned().unwrap_or_default();
    }
    let Ok((from, to, by)) = range(parts) else { return Value::Null };
    let start = from + i128::from(index) * by;
    let int = |number: i128| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    [(Arc::from("from"), int(start)), (Arc::from("to"), int((start + by).min(to)))].into_iter().collect()
}

/// Reads the start, the end and the width of a range. The numbers are far from overflow.
fn range(parts: &[Value]) -> Result<(i128, i128, i128), String> {
    let number = |place: usize, field: &str| {
        let value = parts.get(place).cloned().unwrap_or_default();
        whole(&value).ok_or_else(|| format!("`each.{field}` is a whole number, not {}", value.with_article()))
    };
    Ok((number(0, "from")?, number(1, "to")?, number(2, "by")?))
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and below 2^53")]
        Value::Double(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(*number as i128),
        _ => None,
    }
}
