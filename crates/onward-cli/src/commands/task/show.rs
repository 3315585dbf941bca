//! `onward task show`

use onward::Forecast;
use onward_store::{Refusal, Store, TaskRecord, TaskState};

use super::named::Tasks;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line, show_task, task_json};
use crate::store_file;

/// Shows each of the tasks.
pub(crate) async fn run(options: &GlobalOptions, tasks: Tasks) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    for (index, task) in tasks.numbers(&*store).await?.into_iter().enumerate() {
        let record = store.task(task).await?.ok_or(Refusal::TaskNotFound(task))?;
        let forecast = forecast(&*store, &record).await?;
        if options.json {
            print_json(&with_forecast(task_json(record)?, forecast)?)?;
            continue;
        }
        if index > 0 {
            print_line("")?;
        }
        print_line(show_task(&record, forecast))?;
    }
    Ok(ExitCode::Done)
}

/// How far a running task is, and how long it may take.
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
