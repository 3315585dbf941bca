//! `onward task delete`

use onward_store::BulkVerb;

use super::bulk;
use super::chosen::ByFilter;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// Removes the tasks that a filter selects without a trace.
pub(crate) async fn run(options: &GlobalOptions, chosen: ByFilter) -> anyhow::Result<ExitCode> {
    bulk::run(options, BulkVerb::Delete, chosen).await
}
