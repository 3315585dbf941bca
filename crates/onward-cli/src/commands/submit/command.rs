//! Submission of one task.

use std::time::Duration;

use onward_store::{Outcome, Store, Submitted, TaskId, TaskRecord, TaskState, Write};
use serde_json::json;

use super::arguments::Arguments;
use super::lines;
use crate::apply::{apply_one, unexpected, wait_for_end};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{counted, indented, print_json, print_line, print_raw, remark, task_json};
use crate::store_file;

/// Submits one task, or one per line.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.lines {
        return lines::run(options, arguments).await;
    }
    let task = arguments.task_with_payload()?;
    let store = store_file::open_to_submit(options, arguments.wait).await?;
    let submitted = match apply_one(&*store, Write::Submit(Box::new(task))).await? {
        Outcome::Submitted(submitted) => submitted,
        other => return Err(unexpected(other)),
    };
    let rejected = matches!(submitted, Submitted::Rejected { .. });
    if arguments.wait && !rejected {
        let task = submitted.id();
        return within(arguments.wait_timeout, wait(options, &*store, task)).await;
    }
    if options.json {
        print_json(&json!(submitted))?;
    } else {
        print_line(description(submitted))?;
    }
    Ok(if rejected { ExitCode::Failed } else { ExitCode::Done })
}

/// Waits for at most this long.
///
/// # Errors
/// Returns an error if the timeout expires.
pub(super) async fn within(
    timeout: Option<Duration>,
    waiting: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let Some(timeout) = timeout else { return waiting.await };
    tokio::time::timeout(timeout, waiting).await.unwrap_or_else(|_| {
        Err(anyhow::anyhow!(
            "not ended within {timeout:?} (--wait-timeout); the work continues, and onward task wait waits again"
        ))
    })
}

/// Waits for the end of a task and prints its result. The exit code is [`ExitCode::Done`] if it
/// completed.
pub(crate) async fn wait(options: &GlobalOptions, store: &dyn Store, task: TaskId) -> anyhow::Result<ExitCode> {
    let record = wait_for_end(store, task).await?;
    let completed = record.state == TaskState::Completed;
    if options.json {
        print_json(&task_json(record)?)?;
    } else if completed {
        print_result(record.result.as_deref().unwrap_or_default())?;
    } else {
        remark(failure(&record));
    }
    Ok(if completed { ExitCode::Done } else { ExitCode::Failed })
}

fn print_result(result: &[u8]) -> std::io::Result<()> {
    print_raw(result)?;
    if result.last().is_some_and(|last| *last != b'\n') { print_raw(b"\n") } else { Ok(()) }
}

fn failure(record: &TaskRecord) -> String {
    let why = record.errors.last().map(|error| format!(": {}", indented(&error.message))).unwrap_or_default();
    let attempts = counted(record.attempts.into(), "attempt");
    format!("task {} is {} after {attempts}{why}", record.id, record.state)
}

/// Describes the outcome of a submission for people.
fn description(submitted: Submitted) -> String {
    match submitted {
        Submitted::Inserted { id } => format!("task {id} submitted"),
        Submitted::Duplicate { id } => format!("task {id} has the key already; nothing was changed"),
        Submitted::PriorityRaised { id } => {
            format!("task {id} has the key already and is now as urgent as the new one")
        }
        Submitted::Requeued { id } => format!("task {id} has the key and runs; the new task follows when it ends"),
        Submitted::Superseded { id, old } => format!("task {id} replaces task {old}"),
        Submitted::Rejected { id } => format!("rejected: task {id} has the key"),
    }
}
