//! The checks in order, and how the command ends.

use onward_store::Store;
use serde_json::json;

use super::finding::{Finding, exit_code};
use super::{disk, state};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::print_json;
use crate::store_file;

/// Checks everything that can be checked. Exits with 1 if something is bad, and with 3 if the store cannot be opened.
pub(crate) async fn run(options: &GlobalOptions) -> anyhow::Result<ExitCode> {
    let mut findings = disk::file(&options.store);
    show(options, &findings)?;
    let opened = store_file::open_existing_file(options).await;
    let store = match opened {
        Ok(store) => store,
        Err(error) => {
            show(options, &[Finding::bad("open", format!("{error:#}"), "nothing more can be checked until it opens")])?;
            return Ok(ExitCode::of(&error));
        }
    };
    let of_file = state::file(&store).await?;
    show(options, &of_file)?;
    let of_state = state::check(&store).await?;
    show(options, &of_state)?;
    let of_disk = disk::device(&options.store, &*store.clock());
    show(options, &of_disk)?;
    findings.extend(of_file.into_iter().chain(of_state).chain(of_disk));
    Ok(exit_code(&findings))
}

fn show(options: &GlobalOptions, findings: &[Finding]) -> std::io::Result<()> {
    findings.iter().try_for_each(|finding| if options.json { print_json(&json!(finding)) } else { finding.print() })
}
