//! `onward orchestration wait`

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use onward::Engine;
use onward::orchestration::OrchestrationStatus;
use onward_store::TaskId;
use serde_json::{Value, json};

use crate::apply::for_each;
use crate::commands::orchestration::control::start::read_value;
use crate::commands::orchestration::selection::Orchestrations;
use crate::commands::task;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;
use crate::values::parse_positive_duration;

/// Arguments of `onward orchestration wait`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    orchestrations: Orchestrations,
    /// Give up after this long, with exit code 1; default: wait for ever
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    timeout: Option<Duration>,
    /// Wait until each has this status (see onward orchestration status) instead of its end; exit
    /// with 1 if one ends before
    #[arg(long, value_name = "JSON")]
    status: Option<String>,
}

/// Waits for each of the orchestrations.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_stay(options).await?;
    let numbers = RefCell::new(Vec::new());
    let named = arguments.orchestrations.for_each(options, &*store, async |record| {
        numbers.borrow_mut().push(record.id);
        Ok(())
    });
    // A missing one is reported, and the others are still awaited.
    let found = named.await?;
    let numbers = numbers.into_inner();
    let Some(wanted) = arguments.status else {
        let waited = task::wait_for_all_within(options, &*store, &numbers, arguments.timeout).await?;
        return Ok(waited.or_failed(found == ExitCode::Failed));
    };
    let wanted: Value = read_value("status", &wanted)?;
    let engine = Engine::builder().store(Arc::clone(&store)).open().await?;
    let waiting = wait_for_status(options, &engine, numbers, &wanted);
    let code = match arguments.timeout {
        None => waiting.await?,
        Some(timeout) => tokio::time::timeout(timeout, waiting)
            .await
            .map_err(|_| anyhow::anyhow!("not all of them had this status within {timeout:?} (--timeout); they continue, and the same command waits again"))??,
    };
    Ok(code.or_failed(found == ExitCode::Failed))
}

async fn wait_for_status(
    options: &GlobalOptions,
    engine: &Engine,
    numbers: Vec<TaskId>,
    wanted: &Value,
) -> anyhow::Result<ExitCode> {
    let has_status =
        |shown: &OrchestrationStatus| shown.status::<Value>().is_ok_and(|status| status.as_ref() == Some(wanted));
    for_each(numbers, options, async |number| {
        engine.wait_for_status(number, has_status).await?;
        if options.json {
            print_json(&json!({ "id": number, "status": wanted }))?;
        } else {
            print_line(format_args!("orchestration {number} has the status {wanted}"))?;
        }
        Ok(())
    })
    .await
}
