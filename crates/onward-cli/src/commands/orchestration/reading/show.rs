//! `onward orchestration show`

use crate::commands::orchestration::selection::Orchestrations;
use crate::commands::task;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::store_file;

/// Shows each of the orchestrations.
pub(crate) async fn run(options: &GlobalOptions, named: Orchestrations) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let shown = task::TaskPrinter::new(options, &*store);
    named.for_each(options, &*store, async |record| shown.show(record).await).await
}
