//! Submission of one task per line.

use onward_store::{Outcome, Store, Submitted, TaskId, Write};
use serde_json::json;

use super::arguments::Arguments;
use super::command::{wait, within};
use super::task_options::PAYLOAD_FILE;
use crate::apply::unexpected;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::input::{self, Delimiter, Line, Lines};
use crate::options::GlobalOptions;
use crate::output::{ProgressBar, Unit, counted, print_json, print_line};
use crate::store_file;

/// Submits the lines batch by batch. Each batch is one commit.
pub(super) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.task.payload.as_deref().is_some_and(|payload| payload != "-") {
        return Err(wrong_usage("--lines takes its lines from stdin or from --payload-file; leave the payload out"));
    }
    let lines = Lines::new(input::open(PAYLOAD_FILE, arguments.task.payload_file.as_deref())?, Delimiter::LineFeed);
    let store = store_file::open_to_submit(options, arguments.wait).await?;
    let tasks = submit_all(options, &*store, &arguments, lines).await?;
    if !arguments.wait {
        return Ok(ExitCode::Done);
    }
    within(arguments.wait_timeout, wait_for_all(options, &*store, &tasks)).await
}

/// Submits all lines. Returns the numbers of the tasks with `--wait`, and otherwise no numbers, to
/// save memory.
async fn submit_all(
    options: &GlobalOptions,
    store: &dyn Store,
    arguments: &Arguments,
    lines: Lines,
) -> anyhow::Result<Vec<TaskId>> {
    let mut batches = input::read_in_background(lines)?;
    let bar = ProgressBar::new(options, Unit::Tasks, None);
    let (mut tasks, mut count) = (Vec::new(), 0_u64);
    while let Some(batch) = batches.recv().await {
        for submitted in submit(store, arguments, batch?).await? {
            count += 1;
            if arguments.wait {
                tasks.push(submitted.id());
            } else if options.json {
                print_json(&json!(submitted))?;
            }
        }
        bar.set_position(count);
    }
    bar.clear();
    if !options.json && !arguments.wait {
        print_line(format_args!("{} submitted", counted(count, "task")))?;
    }
    Ok(tasks)
}

async fn submit(store: &dyn Store, arguments: &Arguments, batch: Vec<Line>) -> anyhow::Result<Vec<Submitted>> {
    let submit = |line: Line| Ok(Write::Submit(Box::new(arguments.task(line.text)?)));
    let writes = batch.into_iter().map(submit).collect::<anyhow::Result<_>>()?;
    let outcomes = store.apply(vec![Write::All(writes)]).await?;
    match outcomes.into_iter().next() {
        Some(Outcome::All(outcomes)) => outcomes.into_iter().map(submitted).collect(),
        Some(Outcome::Refused(refusal)) => Err(refusal.into()),
        other => Err(unexpected(other)),
    }
}

fn submitted(outcome: Outcome) -> anyhow::Result<Submitted> {
    match outcome {
        Outcome::Submitted(submitted) => Ok(submitted),
        other => Err(unexpected(other)),
    }
}

async fn wait_for_all(options: &GlobalOptions, store: &dyn Store, tasks: &[TaskId]) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::Done;
    for task in tasks {
        if wait(options, store, *task).await? != ExitCode::Done {
            code = ExitCode::Failed;
        }
    }
    Ok(code)
}
