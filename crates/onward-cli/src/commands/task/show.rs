//! `onward task show`

use std::cell::Cell;

use onward::observe::Forecast;
use onward::orchestration::{HistoryEvent, decode_history};
use onward_store::{InstanceRecord, Refusal, Store, StoreReads, TaskId, TaskRecord, TaskState};

use super::numbers::Tasks;
use super::output::Summary;
use crate::apply::for_each;
use crate::commands::orchestration::Waiting;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{orchestration_json, print_json, print_line, show_instance, show_task, task_json};
use crate::store_file;

/// Shows each of the tasks.
pub(crate) async fn run(options: &GlobalOptions, tasks: Tasks) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let (named, shown) = (tasks.numbers(&*store).await?, TaskPrinter::new(options, &*store));
    for_each(named, options, async |task| shown.show(store.task(task).await?.ok_or(Refusal::TaskNotFound(task))?).await)
        .await
}

/// A printer of tasks, one after the other.
pub(crate) struct TaskPrinter<'a> {
    options: &'a GlobalOptions,
    store: &'a dyn Store,
    is_first: Cell<bool>,
}

impl<'a> TaskPrinter<'a> {
    pub(crate) fn new(options: &'a GlobalOptions, store: &'a dyn Store) -> Self {
        Self { options, store, is_first: Cell::new(true) }
    }

    /// Shows all facts of a task.
    pub(crate) async fn show(&self, record: TaskRecord) -> anyhow::Result<()> {
        let Self { options, store, .. } = *self;
        if !self.is_first.replace(false) && !options.json {
            print_line("")?;
        }
        if record.orchestration {
            return show_orchestration(options, store, record).await;
        }
        let forecast = forecast(store, &record).await?;
        let output = Summary::read(store, record.id).await?;
        if options.json {
            print_json(&with_output(with_forecast(task_json(record)?, forecast)?, output.as_ref()))?;
        } else {
            print_line(show_task(&record, forecast))?;
            output.iter().try_for_each(|output| print_line(output.text()))?;
        }
        Ok(())
    }
}

/// Returns the number of messages that an ended orchestration did not read. They are those that its
/// code was never offered, and the signals that it left, which the last part of its history lists.
async fn unread(store: &dyn Store, task: TaskId, instance: &InstanceRecord) -> anyhow::Result<u64> {
    let last = store.instance_history(task, instance.length.saturating_sub(1), 1).await?;
    let mut unread = instance.waiting;
    for chunk in &last {
        for event in decode_history(chunk)? {
            unread += if let HistoryEvent::SignalsUnread { count, .. } = event { count } else { 0 };
        }
    }
    Ok(unread)
}

/// Shows the task of an orchestration, its instance, and what it waits for.
async fn show_orchestration(options: &GlobalOptions, store: &dyn Store, record: TaskRecord) -> anyhow::Result<()> {
    let instance = store.instance(record.id).await?.unwrap_or_default();
    let waiting = Waiting::read(store, &record).await?;
    if options.json {
        let mut shown = orchestration_json(record, &instance)?;
        if let (Some(fields), Some(waiting)) = (shown.as_object_mut(), waiting) {
            fields.insert("waits_for".to_owned(), waiting.json());
        }
        return Ok(print_json(&shown)?);
    }
    let unread = if record.state.is_ended() { Some(unread(store, record.id, &instance).await?) } else { None };
    print_line(show_task(&record, None))?;
    print_line(show_instance(&instance, unread))?;
    for text in waiting.iter().flat_map(Waiting::texts) {
        print_line(format_args!("{:<12} {text}", "waits for"))?;
    }
    Ok(())
}

/// Returns the forecast of a running task from its progress and the statistics of its kind.
async fn forecast(store: &dyn Store, record: &TaskRecord) -> anyhow::Result<Option<Forecast>> {
    if record.state != TaskState::Running {
        return Ok(None);
    }
    let statistics = store.statistics().await?;
    let of_kind = statistics.iter().find(|statistics| statistics.kind == record.kind);
    Ok(Forecast::of_record(record, of_kind, store.clock().now()))
}

fn with_forecast(mut task: serde_json::Value, forecast: Option<Forecast>) -> serde_json::Result<serde_json::Value> {
    if let (Some(fields), Some(forecast)) = (task.as_object_mut(), forecast) {
        fields.insert("forecast".to_owned(), serde_json::to_value(forecast)?);
    }
    Ok(task)
}

fn with_output(mut task: serde_json::Value, output: Option<&Summary>) -> serde_json::Value {
    if let (Some(fields), Some(output)) = (task.as_object_mut(), output) {
        fields.insert("output".to_owned(), output.json());
    }
    task
}
