//! The runs in a store: listing and forgetting them.

use onward_store::bounds::EACH_QUEUE_PREFIX;
use onward_store::{Name, Page, QueueRecord, SessionRecord, Store, StoreReads, TaskFilter, TaskRecord, Timestamp};
use serde_json::{Value, json};

use super::changed_command;
use super::identity::{COMMAND_TAG, program_of};
use super::open_run::forget_queue;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{Align, Table, counted, moment, optional, print_json, print_line, print_table, remark};
use crate::store_file;

/// A run of `onward each`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunRecord {
    /// Its name or digest.
    pub(crate) name: String,
    /// The program of its command, if it is still known.
    pub(crate) program: Option<String>,
    /// The number of waiting lines.
    pub(crate) waiting: u64,
    /// The number of lines whose command runs.
    pub(crate) running: u64,
    /// The number of lines that are done.
    pub(crate) done: u64,
    /// The number of lines that failed after all retries, were cancelled or expired.
    pub(crate) failed: u64,
    /// The time at which its newest line was submitted.
    pub(crate) submitted_at: Option<Timestamp>,
    /// The number of processes that work on it.
    pub(crate) processes: usize,
}

/// Returns the runs with lines, by name.
pub(crate) async fn runs(store: &dyn Store) -> anyhow::Result<Vec<RunRecord>> {
    let (queues, sessions) = (store.queues().await?, store.sessions().await?);
    let mut runs = Vec::new();
    for queue in &queues {
        if let Some(name) = queue.name.strip_prefix(EACH_QUEUE_PREFIX) {
            let (newest, tagged) = (newest(store, queue, None).await?, newest(store, queue, Some(COMMAND_TAG)).await?);
            let command = match &tagged {
                Some(tagged) => changed_command::command_of(store, name, tagged).await?,
                None => None,
            };
            runs.extend(newest.map(|newest| run(name, queue, &newest, command.as_deref(), &sessions)));
        }
    }
    Ok(runs)
}

async fn newest(store: &dyn Store, queue: &QueueRecord, tag: Option<&str>) -> anyhow::Result<Option<TaskRecord>> {
    let (queue, tag_key_prefix) = (Some(queue.name.clone()), tag.map(str::to_owned));
    let filter = TaskFilter { queue, tag_key_prefix, ..TaskFilter::default() };
    Ok(store.tasks(filter, Page { before: None, limit: 1 }).await?.tasks.pop())
}

fn run(
    name: &str,
    queue: &QueueRecord,
    newest: &TaskRecord,
    command: Option<&str>,
    sessions: &[SessionRecord],
) -> RunRecord {
    let ended = queue.ended;
    let works_on =
        |session: &&SessionRecord| session.serves.queues.as_ref().is_some_and(|queues| queues.contains(&queue.name));
    RunRecord {
        name: name.to_owned(),
        program: command.map(|command| program_of(command).to_owned()),
        waiting: queue.blocked + queue.scheduled + queue.waiting,
        running: queue.running,
        done: ended.completed,
        failed: ended.failed + ended.dead + ended.cancelled + ended.expired,
        submitted_at: Some(newest.submitted_at),
        processes: sessions.iter().filter(works_on).count(),
    }
}

/// Lists the runs.
pub(super) async fn list(options: &GlobalOptions) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let runs = runs(&*store).await?;
    if options.json {
        runs.iter().try_for_each(|run| print_json(&json_of(run)))?;
    } else if runs.is_empty() {
        remark("no runs; onward each -- COMMAND starts one");
    } else {
        print_table(table(&runs))?;
    }
    Ok(ExitCode::Done)
}

fn json_of(run: &RunRecord) -> Value {
    let RunRecord { name, program, waiting, running, done, failed, submitted_at, processes } = run;
    json!({
        "run": name, "program": program, "waiting": waiting, "running": running, "done": done, "failed": failed,
        "submitted_at": submitted_at, "processes": processes,
    })
}

fn table(runs: &[RunRecord]) -> Table {
    let numbers = ["WAITING", "RUNNING", "DONE", "FAILED", "PROCESSES"];
    let mut columns = vec![("RUN", Align::Left), ("PROGRAM", Align::Left)];
    columns.extend(numbers.map(|number| (number, Align::Right)));
    columns.push(("SUBMITTED", Align::Left));
    let mut table = Table::new(columns);
    for run in runs {
        let mut cells = vec![run.name.clone(), optional(run.program.clone(), |program| program)];
        cells.extend(
            [run.waiting, run.running, run.done, run.failed, run.processes as u64].map(|number| number.to_string()),
        );
        cells.push(optional(run.submitted_at, moment));
        table.row(cells);
    }
    table
}

/// Forgets a run: its finished lines and the waiting ones.
pub(super) async fn forget(options: &GlobalOptions, name: &str) -> anyhow::Result<ExitCode> {
    let queue = Name::new(format!("{EACH_QUEUE_PREFIX}{name}"));
    let queue = queue.map_err(|error| wrong_usage(format!("--forget {name:?}: {error}")))?;
    let store = store_file::open_existing(options).await?;
    let Some(lines) = forget_queue(options, &*store, &queue, "--forget").await? else {
        anyhow::bail!("--forget {name}: {} has no such run; onward each --list lists its runs", options.store);
    };
    if options.json {
        print_json(&json!({ "run": name, "forgotten": lines }))?;
    } else {
        print_line(format_args!("forgot {} of the run {name}", counted(lines, "line")))?;
    }
    Ok(ExitCode::Done)
}
