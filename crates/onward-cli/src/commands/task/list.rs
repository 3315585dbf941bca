//! `onward task list`

use clap::Args;
use onward_store::{Name, Page, Store, TaskFilter, TaskId, TaskPage, TaskRecord, TaskState, Timestamp, limits};

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{
    Align, Table, colored_state, moment, one_line, optional, print_json, print_line, remark, task_json,
};
use crate::store_file;

/// The widest key that a table shows, in columns.
const KEY_COLUMNS: usize = 32;

/// Arguments of `onward task list`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only tasks in this state; may be given several times
    #[arg(long = "state", value_name = "STATE")]
    states: Vec<TaskState>,
    /// Only tasks of this kind
    #[arg(long)]
    kind: Option<Name>,
    /// Only tasks in this queue
    #[arg(long)]
    queue: Option<Name>,
    /// Only tasks with this key
    #[arg(long)]
    key: Option<String>,
    /// Only children of this task
    #[arg(long, value_name = "TASK")]
    parent: Option<TaskId>,
    /// Only tasks submitted at or after this time (RFC 3339, such as 2026-05-04T10:00:00Z)
    #[arg(long, value_name = "TIME")]
    since: Option<Timestamp>,
    /// Only tasks submitted before this time
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,
    /// Only tasks with a lower number than this one: the next page
    #[arg(long, value_name = "TASK")]
    before: Option<TaskId>,
    /// At most this many
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// With payloads and results (shown with --json)
    #[arg(long)]
    payload: bool,
}

/// Lists tasks.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    let page = read(&*store, arguments).await?;
    if options.json {
        for task in page.tasks {
            print_json(&task_json(task)?)?;
        }
    } else if page.tasks.is_empty() {
        remark("no tasks");
    } else {
        print_line(table(&page.tasks))?;
    }
    if let Some(next) = page.next {
        remark(format_args!("there are more: --before {next}"));
    }
    Ok(ExitCode::Done)
}

/// Reads page after page, since a store hands out at most [`limits::PAGE`] at a time.
async fn read(store: &dyn Store, arguments: Arguments) -> anyhow::Result<TaskPage> {
    let (limit, mut before) = (arguments.limit, arguments.before);
    let filter = filter(arguments);
    let mut all = TaskPage::default();
    while all.tasks.len() < limit {
        let wanted = (limit - all.tasks.len()).min(limits::PAGE);
        let page = store.tasks(filter.clone(), Page { before, limit: wanted }).await?;
        all.tasks.extend(page.tasks);
        all.next = page.next;
        before = page.next;
        if page.next.is_none() {
            break;
        }
    }
    Ok(all)
}

fn filter(arguments: Arguments) -> TaskFilter {
    TaskFilter {
        kind: arguments.kind,
        queue: arguments.queue,
        key: arguments.key,
        parent: arguments.parent,
        states: arguments.states,
        submitted_from: arguments.since,
        submitted_before: arguments.until,
        with_payload: arguments.payload,
        ..TaskFilter::default()
    }
}

fn table(tasks: &[TaskRecord]) -> Table {
    let mut table = Table::new([
        ("TASK", Align::Right),
        ("KIND", Align::Left),
        ("QUEUE", Align::Left),
        ("STATE", Align::Left),
        ("PRIORITY", Align::Right),
        ("ATTEMPTS", Align::Right),
        ("SUBMITTED", Align::Left),
        ("FINISHED", Align::Left),
        ("KEY", Align::Left),
    ]);
    for task in tasks {
        table.row([
            task.id.to_string(),
            task.kind.to_string(),
            task.queue.to_string(),
            colored_state(task.state),
            task.priority.0.to_string(),
            task.attempts.to_string(),
            moment(task.submitted_at),
            optional(task.finished_at, moment),
            optional(task.key.as_deref(), |key| one_line(key, KEY_COLUMNS)),
        ]);
    }
    table
}
