//! The tasks of steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use onward_store::bounds::SCRIPT_KIND;
use onward_store::{Name, NewTask, Priority, Tags, Timestamp, Ttl, TtlFrom, UniqueKey, When};

use super::Turn;
use super::scope::{Names, NoValue};
use crate::workflow::expression::Value;
use crate::workflow::run::bounds::{PAYLOAD_BYTES, RUN_KIND_PREFIX};
use crate::workflow::run::state::json::written;
use crate::workflow::template::{Step, TextTemplate, Undo, ValueTemplate, Work, WorkKind};

impl Turn<'_> {
    /// Makes the task of a step, or of one of its items.
    pub(super) fn task(&self, number: usize, work: &Work, item: Option<u32>) -> Result<NewTask, NoValue> {
        let names = self.names_of(number, item)?;
        let mut task = self.bare_task(&work.kind, work, &names)?;
        task.payload = self.payload(number, &work.kind, work.with.as_ref(), &names, false)?;
        set_queue(&mut task, work.queue.as_deref())?;
        if let Some(key) = &work.key {
            let key = text(&names, "key", key)?.to_string();
            task.unique = Some(UniqueKey { key, on_duplicate: Default::default(), keep_for: Default::default() });
        }
        task.ttl = work.ttl.map(|duration| Ttl { duration, from: TtlFrom::Submission });
        self.set_times(&mut task, number);
        if !task.orchestration {
            (task.retry, task.timeout, task.heartbeat_timeout) = (work.retry, work.timeout, work.heartbeat);
        }
        checked(task)
    }

    /// Makes the task that undoes a step, or one of its items.
    pub(super) fn undo_task(
        &self,
        number: usize,
        work: &Work,
        undo: Option<&Undo>,
        item: Option<u32>,
    ) -> Result<NewTask, NoValue> {
        let Some(undo) = undo else { return self.undo_of_run(number, work, item) };
        let names = self.names_of(number, item)?;
        let mut task = self.bare_task(&undo.kind, work, &names)?;
        task.payload = self.payload(number, &undo.kind, undo.with.as_ref(), &names, true)?;
        set_queue(&mut task, undo.queue.as_deref())?;
        if !task.orchestration {
            (task.retry, task.timeout) = (undo.retry, undo.timeout);
        }
        checked(task)
    }

    /// Makes the task that undoes the run that a step started. The caller gives it the template.
    fn undo_of_run(&self, number: usize, work: &Work, item: Option<u32>) -> Result<NewTask, NoValue> {
        let names = self.names_of(number, item)?;
        let mut task = self.bare_task(&work.kind, work, &names)?;
        set_queue(&mut task, work.queue.as_deref())?;
        let record = self.state.steps.get(number);
        let batch = record.and_then(|record| record.batch.as_ref());
        let of_item = |item: u32| batch.and_then(|batch| batch.items.get(item as usize)).and_then(|item| item.task);
        let run = item.map_or_else(|| record.and_then(|record| record.task), of_item);
        let WorkKind::Workflow { name, .. } = &work.kind else { return checked(task) };
        let run = run.map_or(Value::Null, |run| Value::Int(run.0));
        task.payload = written(&map([("workflow", name.as_str().into()), ("undo", run)]));
        checked(task)
    }

    fn names_of(&self, number: usize, item: Option<u32>) -> Result<Names<'_, '_>, NoValue> {
        let item = match item {
            Some(index) => Some((index, self.item(number, index)?)),
            None => None,
        };
        Ok(Names { turn: self, item })
    }

    /// Makes a task with all that steps and undos share.
    fn bare_task(&self, kind: &WorkKind, work: &Work, names: &Names<'_, '_>) -> Result<NewTask, NoValue> {
        let mut task = NewTask::of(name("task", &kind_name(kind))?);
        task.orchestration = matches!(kind, WorkKind::Workflow { .. } | WorkKind::Orchestration { .. });
        task.priority = work.priority.map_or(Priority::NORMAL, Priority);
        task.affinity = match &work.affinity {
            Some(affinity) => Some(name("affinity", &text(names, "affinity", affinity)?)?),
            None => self.context.affinity.clone(),
        };
        if let Some(group) = &work.group {
            task.group = Some(name("group", &text(names, "group", group)?)?);
        }
        if !work.tags.is_empty() {
            task.tags = texts(names, "tags", &work.tags).collect::<Result<Tags, NoValue>>()?;
        }
        Ok(task)
    }

    fn set_times(&self, task: &mut NewTask, number: usize) {
        let Some(step) = self.step(number) else { return };
        if step.after.is_some() {
            task.when = When::At(self.start_of(step, number));
        }
        // A run gets its limits with its input, and an orchestration has none.
        if !task.orchestration {
            task.deadline = self.deadline(number);
        }
    }

    /// Returns the moment at which all attempts of a step have ended.
    pub(super) fn deadline(&self, number: usize) -> Option<Timestamp> {
        let step = self.step(number)?;
        step.deadline.map(|deadline| self.start_of(step, number).plus(deadline))
    }

    /// Returns the time at which a step starts. Later items and attempts belong to the same start.
    fn start_of(&self, step: &Step, number: usize) -> Timestamp {
        let began = self.state.steps.get(number).and_then(|record| record.started);
        began.unwrap_or(self.now).plus(step.after.unwrap_or_default())
    }

    /// Returns the input of a run below this one, with its limits in microseconds.
    fn run_below(&self, number: usize, name: &str, version: Option<&str>, input: Value) -> Value {
        let timeout = self.work(number).and_then(|work| work.timeout).map(|timeout| timeout.as_micros());
        let timeout = timeout.map_or(Value::Null, |timeout| Value::Int(i64::try_from(timeout).unwrap_or(i64::MAX)));
        let deadline = self.deadline(number).map_or(Value::Null, |deadline| Value::Int(deadline.as_microseconds()));
        let version = version.map_or(Value::Null, Value::from);
        map([
            ("workflow", name.into()),
            ("version", version),
            ("input", input),
            ("timeout", timeout),
            ("deadline", deadline),
        ])
    }

    fn payload(
        &self,
        number: usize,
        kind: &WorkKind,
        with: Option<&ValueTemplate>,
        names: &Names<'_, '_>,
        is_undo: bool,
    ) -> Result<bytes::Bytes, NoValue> {
        let given = || match with {
            Some(with) => {
                with.evaluate(names, &mut self.budget.borrow_mut()).map_err(|error| NoValue::of("with", error))
            }
            None => self.everything(number, is_undo),
        };
        let value = match kind {
            WorkKind::Task { .. } | WorkKind::Orchestration { .. } => given()?,
            WorkKind::Run { script, env, stdin } => {
                let step = self.step(number).map_or("", |step| &step.name);
                command(names, step, script, env, stdin.as_ref())?
            }
            // The limits are those of the step, not of its undo.
            WorkKind::Workflow { name, version } if is_undo => {
                let version = version.as_deref().map_or(Value::Null, Value::from);
                map([("workflow", name.as_str().into()), ("version", version), ("input", given()?)])
            }
            WorkKind::Workflow { name, version } => self.run_below(number, name, version.as_deref(), given()?),
        };
        Ok(written(&value))
    }

    /// Returns the input and the results of all ancestors, or in an undo of all that ended.
    fn everything(&self, number: usize, is_undo: bool) -> Result<Value, NoValue> {
        let template = &self.context.template;
        let ended = (0..template.steps.len()).filter(|step| self.state.step_state(*step).is_ended());
        let steps: Vec<usize> = if is_undo { ended.collect() } else { template.graph.ancestors(number).collect() };
        let result = |step: usize| {
            let (name, record) = (template.steps.get(step), self.state.steps.get(step));
            let (Some(step), Some(record)) = (name, record) else { return Ok(None) };
            self.result_of(record).map(|result| Some((Arc::from(step.name.as_str()), result)))
        };
        // Every result is read before the first missing one is reported, so that one read fetches
        // all of them.
        let results: Vec<_> = steps.into_iter().map(result).collect();
        let results: Vec<(Arc<str>, Value)> =
            results.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>()?;
        Ok(map([("input", self.context.input.clone()), ("results", results.into_iter().collect())]))
    }
}

/// Returns the kind of the tasks of a kind of work.
fn kind_name(kind: &WorkKind) -> std::borrow::Cow<'_, str> {
    match kind {
        WorkKind::Task { kind } | WorkKind::Orchestration { kind } => kind.into(),
        WorkKind::Run { .. } => SCRIPT_KIND.into(),
        WorkKind::Workflow { name, .. } => format!("{RUN_KIND_PREFIX}{name}").into(),
    }
}

fn command(
    names: &Names<'_, '_>,
    step: &str,
    script: &str,
    env: &BTreeMap<String, TextTemplate>,
    stdin: Option<&TextTemplate>,
) -> Result<Value, NoValue> {
    let variable = |entry: Result<(String, String), NoValue>| {
        entry.map(|(name, value)| (Arc::<str>::from(name), Value::from(value)))
    };
    let env = texts(names, "env", env).map(variable).collect::<Result<Value, NoValue>>()?;
    let stdin = match stdin {
        Some(stdin) => Value::Text(text(names, "stdin", stdin)?),
        None => Value::Null,
    };
    Ok(map([("step", step.into()), ("script", script.into()), ("env", env), ("stdin", stdin)]))
}

fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let is_given = |(_, value): &(&str, Value)| *value != Value::Null;
    let given = fields.into_iter().filter(|field| field.0 == "input" || is_given(field));
    given.map(|(name, value)| (Arc::from(name), value)).collect()
}

fn text(names: &Names<'_, '_>, field: &str, template: &TextTemplate) -> Result<Arc<str>, NoValue> {
    let text = template.evaluate_text(names, &mut names.turn.budget.borrow_mut());
    text.map_err(|error| NoValue::of(field, error))
}

/// Evaluates the texts of a map.
fn texts<'e>(
    names: &'e Names<'_, '_>,
    field: &'e str,
    templates: &'e BTreeMap<String, TextTemplate>,
) -> impl Iterator<Item = Result<(String, String), NoValue>> + 'e {
    templates.iter().map(move |(key, template)| {
        let value = text(names, &format!("{field}.{key}"), template)?;
        Ok((key.clone(), value.to_string()))
    })
}

fn name(field: &str, text: &str) -> Result<Name, NoValue> {
    Name::new(text).map_err(|error| NoValue::Failed(format!("{error}. In {field}")))
}

fn set_queue(task: &mut NewTask, queue: Option<&str>) -> Result<(), NoValue> {
    if let Some(queue) = queue {
        task.queue = name("queue", queue)?;
    }
    Ok(())
}

/// Checks a task as the store does. A turn with a task that the store refuses could not be written.
fn checked(task: NewTask) -> Result<NewTask, NoValue> {
    task.check(PAYLOAD_BYTES).map_err(|error| NoValue::Failed(error.to_string()))?;
    Ok(task)
}
