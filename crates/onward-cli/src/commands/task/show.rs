//! `onward task show`

use onward_store::Refusal;

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
        if options.json {
            print_json(&task_json(record)?)?;
            continue;
        }
        if index > 0 {
            print_line("")?;
        }
        print_line(show_task(&record))?;
    }
    Ok(ExitCode::Done)
}
