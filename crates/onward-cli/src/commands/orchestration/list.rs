//! `onward orchestration list`

use clap::Args;
use onward_store::{InstanceRecord, Page, Store, TaskId, TaskRecord, Timestamp, limits};

use crate::commands::task::FilterArguments;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{
    Align, Table, colored_state, duration_text, one_line, optional, orchestration_json, print_json, print_line, remark,
};
use crate::store_file;

/// The widest key and the widest status that a table shows, in columns.
const KEY_COLUMNS: usize = 32;
const STATUS_COLUMNS: usize = 40;

/// How many tasks are looked at for one listing: a store tells orchestrations from other tasks only when it reads them.
const LOOKED_AT: usize = 200_000;

/// Arguments of `onward orchestration list`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: FilterArguments,
    /// Only orchestrations with a lower number than this one: the next page
    #[arg(long, value_name = "ORCHESTRATION")]
    before: Option<TaskId>,
    /// At most this many
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
}

/// Lists orchestrations.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    let found = Found::read(&*store, &arguments).await?;
    if options.json {
        for (task, instance) in found.listed {
            print_json(&orchestration_json(task, &instance)?)?;
        }
    } else if found.listed.is_empty() {
        remark("no orchestrations");
    } else {
        print_line(table(&found.listed, store.clock().now()))?;
    }
    match found.more {
        Some(More::Found(before)) => remark(format_args!("there are more: --before {before}")),
        Some(More::Unknown(before)) => remark(format_args!(
            "{LOOKED_AT} tasks were looked at, and there may be more: --before {before}; a filter such as --kind finds them sooner"
        )),
        None => {}
    }
    Ok(ExitCode::Done)
}

#[derive(Default)]
struct Found {
    listed: Vec<(TaskRecord, InstanceRecord)>,
    more: Option<More>,
}

/// Where the listing goes on.
enum More {
    Found(TaskId),
    Unknown(TaskId),
}

impl Found {
    async fn read(store: &dyn Store, arguments: &Arguments) -> anyhow::Result<Self> {
        let (filter, mut before) = (arguments.filter.filter()?, arguments.before);
        let mut found = Self::default();
        for _ in 0..LOOKED_AT / limits::PAGE {
            let page = store.tasks(filter.clone(), Page { before, limit: limits::PAGE }).await?;
            if found.take(store, page.tasks, arguments.limit).await? {
                return Ok(found);
            }
            before = page.next;
            if before.is_none() {
                return Ok(found);
            }
        }
        found.more = before.map(More::Unknown);
        Ok(found)
    }

    /// Takes the orchestrations among tasks; answers whether there are more of them than are wanted.
    async fn take(&mut self, store: &dyn Store, tasks: Vec<TaskRecord>, limit: usize) -> anyhow::Result<bool> {
        for task in tasks.into_iter().filter(|task| task.orchestration) {
            if self.listed.len() == limit {
                self.more = self.listed.last().map(|(last, _)| More::Found(last.id));
                return Ok(true);
            }
            let instance = store.instance(task.id).await?.unwrap_or_default();
            self.listed.push((task, instance));
        }
        Ok(false)
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
    ]);
    for (task, instance) in listed {
        let status = instance.status.as_ref().map(|status| String::from_utf8_lossy(status));
        table.row([
            task.id.to_string(),
            task.kind.to_string(),
            optional(task.key.as_deref(), |key| one_line(key, KEY_COLUMNS)),
            colored_state(task.state),
            instance.length.to_string(),
            instance.waiting.to_string(),
            duration_text(now - task.submitted_at),
            optional(status, |status| one_line(&status, STATUS_COLUMNS)),
        ]);
    }
    table
}
