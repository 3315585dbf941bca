//! `onward task list`

use clap::Args;
use onward_store::{Page, Store, StoreReads, TaskFilter, TaskId, TaskPage, TaskRecord, TaskState, bounds};

use super::filter::FilterArguments;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{
    Align, Table, colored_state, moment, one_line, optional, print_json, print_table, progress, remark, task_json,
};
use crate::store_file;
use crate::values::parse_row_count;

/// The widest key that a table shows, in columns.
const KEY_COLUMNS: usize = 32;

/// Arguments of `onward task list`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: FilterArguments,
    /// Only tasks with a lower number than this one: the next page
    #[arg(long, value_name = "TASK")]
    before: Option<TaskId>,
    /// At most this many
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = parse_row_count)]
    limit: usize,
    /// Include payloads and results (shown with --json)
    #[arg(long)]
    payload: bool,
}

/// Lists tasks.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let page = read(&*store, arguments).await?;
    if options.json {
        for task in page.tasks {
            print_json(&task_json(task)?)?;
        }
    } else if page.tasks.is_empty() {
        remark("no tasks");
    } else {
        print_table(table(&page.tasks))?;
    }
    if let Some(next) = page.next {
        remark(format_args!("there are more: --before {next}"));
    }
    Ok(ExitCode::Done)
}

/// Reads page by page, because a store returns at most [`bounds::PAGE`] tasks at a time.
async fn read(store: &dyn Store, arguments: Arguments) -> anyhow::Result<TaskPage> {
    let (limit, mut before) = (arguments.limit, arguments.before);
    let filter = TaskFilter { with_payload: arguments.payload, ..arguments.filter.filter()? };
    let mut all = TaskPage::default();
    while all.tasks.len() < limit {
        let wanted = (limit - all.tasks.len()).min(bounds::PAGE);
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

/// The widest progress that a table shows, in columns.
const PROGRESS_COLUMNS: usize = 40;

fn table(tasks: &[TaskRecord]) -> Table {
    // The column is shown only if a running task has reported progress.
    let shows_progress = |task: &TaskRecord| task.state == TaskState::Running && task.progress.is_some();
    let with_progress = tasks.iter().any(shows_progress);
    let mut columns = vec![
        ("TASK", Align::Right),
        ("KIND", Align::Left),
        ("QUEUE", Align::Left),
        ("STATE", Align::Left),
        ("PRIORITY", Align::Right),
        ("ATTEMPTS", Align::Right),
        ("SUBMITTED", Align::Left),
        ("FINISHED", Align::Left),
        ("KEY", Align::Left),
    ];
    columns.extend(with_progress.then_some(("PROGRESS", Align::Left)));
    let mut table = Table::new(columns).dropping(&["ATTEMPTS", "PRIORITY", "FINISHED", "QUEUE", "SUBMITTED"]);
    for task in tasks {
        let mut cells = vec![
            task.id.to_string(),
            task.kind.to_string(),
            task.queue.to_string(),
            colored_state(task.state),
            task.priority.0.to_string(),
            task.attempts.to_string(),
            moment(task.submitted_at),
            optional(task.finished_at, moment),
            optional(task.key.as_deref(), |key| one_line(key, KEY_COLUMNS)),
        ];
        let progress_report = task.progress.as_ref().filter(|_| shows_progress(task));
        cells.extend(
            with_progress
                .then(|| optional(progress_report, |reported| one_line(&progress(reported), PROGRESS_COLUMNS))),
        );
        table.row(cells);
    }
    table
}
