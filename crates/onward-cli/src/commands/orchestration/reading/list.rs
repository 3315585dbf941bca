//! `onward orchestration list`

use clap::Args;
use onward_store::{Hold, InstanceRecord, Page, Store, StoreReads, TaskFilter, TaskId, TaskRecord, Timestamp, bounds};

use crate::commands::task::FilterArguments;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{
    Align, Table, colored_state, duration_text, one_line, optional, orchestration_json, print_json, print_table, remark,
};
use crate::store_file;
use crate::values::parse_row_count;

/// The widest key and the widest status that a table shows, in columns.
const KEY_COLUMNS: usize = 32;
const STATUS_COLUMNS: usize = 40;

/// Arguments of `onward orchestration list`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: FilterArguments,
    /// Only orchestrations with a lower number than this one: the next page
    #[arg(long, value_name = "ORCHESTRATION")]
    before: Option<TaskId>,
    /// At most this many
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = parse_row_count)]
    limit: usize,
}

/// Lists orchestrations.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let (listed, more) = read(&*store, &arguments).await?;
    if options.json {
        for (task, instance) in listed {
            print_json(&orchestration_json(task, &instance)?)?;
        }
    } else if listed.is_empty() {
        remark("no orchestrations");
    } else {
        print_table(table(&listed, store.clock().now()))?;
    }
    if let Some(before) = more {
        remark(format_args!("there are more: --before {before}"));
    }
    Ok(ExitCode::Done)
}

type Listed = Vec<(TaskRecord, InstanceRecord)>;

/// Returns the newest orchestrations, and the position of the next page.
async fn read(store: &dyn Store, arguments: &Arguments) -> anyhow::Result<(Listed, Option<TaskId>)> {
    let filter = TaskFilter { orchestration: Some(true), ..arguments.filter.filter()? };
    let (mut before, mut listed) = (arguments.before, Listed::new());
    loop {
        let limit = arguments.limit.saturating_sub(listed.len()).min(bounds::PAGE);
        let page = store.tasks(filter.clone(), Page { before, limit }).await?;
        for task in page.tasks {
            let instance = store.instance(task.id).await?.unwrap_or_default();
            listed.push((task, instance));
        }
        before = page.next;
        if before.is_none() || listed.len() >= arguments.limit {
            return Ok((listed, before));
        }
    }
}

/// Returns its state, or its hold if it has one.
fn standing(task: &TaskRecord, instance: &InstanceRecord) -> String {
    match instance.hold {
        _ if task.state.is_ended() => colored_state(task.state),
        Hold::None => colored_state(task.state),
        Hold::Paused | Hold::PausedDue => "paused".to_owned(),
        Hold::Unstarted => "unstarted".to_owned(),
    }
}

fn table(listed: &[(TaskRecord, InstanceRecord)], now: Timestamp) -> Table {
    let mut table = Table::new([
        ("NUMBER", Align::Right),
        ("KIND", Align::Left),
        ("KEY", Align::Left),
        ("STATE", Align::Left),
        ("EVENTS", Align::Right),
        ("MESSAGES", Align::Right),
        ("AGE", Align::Right),
        ("STATUS", Align::Left),
    ])
    .dropping(&["MESSAGES", "EVENTS", "AGE", "STATUS"]);
    for (task, instance) in listed {
        let status = instance.status.as_ref().map(|status| String::from_utf8_lossy(status));
        table.row([
            task.id.to_string(),
            task.kind.to_string(),
            optional(task.key.as_deref(), |key| one_line(key, KEY_COLUMNS)),
            standing(task, instance),
            instance.length.to_string(),
            instance.waiting.to_string(),
            duration_text(now - task.submitted_at),
            optional(status, |status| one_line(&status, STATUS_COLUMNS)),
        ]);
    }
    table
}
