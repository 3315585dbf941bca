//! `onward orchestration tree`

use crate::commands::orchestration::selection::Orchestrations;
use crate::commands::task;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::store_file;

/// Shows each of the orchestrations with the tasks and orchestrations that it started.
pub(crate) async fn run(options: &GlobalOptions, named: Orchestrations) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    named.for_each(options, &*store, async |root| task::show_tree(options, &*store, root.id).await).await
}
