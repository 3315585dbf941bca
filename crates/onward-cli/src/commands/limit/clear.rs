//! `onward limit clear`

use onward_store::SetLimit;

use super::scope::Scoped;
use super::set::{set, show};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::store_file;

/// Removes a limit.
pub(crate) async fn run(options: &GlobalOptions, scope: Scoped) -> anyhow::Result<ExitCode> {
    let scope = scope.scope();
    let store = store_file::open_to_edit(options, false).await?;
    let limit = set(&*store, SetLimit::new(scope.clone()).unlimited()).await?;
    show(options, &scope, limit)
}
