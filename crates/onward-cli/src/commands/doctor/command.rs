//! Runs the checks in order, and returns the exit code.

use std::path::Path;

use onward_store::{SqliteStore, Store, SystemClock};
use serde_json::json;

use super::finding::{Finding, exit_code};
use super::{disk, processes, state};
use crate::exit_code::ExitCode;
use crate::location::Location;
use crate::options::GlobalOptions;
use crate::output::print_json;
use crate::store_file;

/// Runs all checks. Exits with 1 if something is bad, and with 3 if the store cannot be opened.
pub(crate) async fn run(options: &GlobalOptions) -> anyhow::Result<ExitCode> {
    match &options.store {
        Location::File(path) => file(options, path).await,
        #[cfg(feature = "postgres")]
        Location::Server(url) => database(options, url).await,
        #[cfg(not(feature = "postgres"))]
        Location::Server(_) => Err(store_file::not_built(&options.store)),
        Location::Http(_) => Err(store_file::not_built(&options.store)),
    }
}

async fn file(options: &GlobalOptions, path: &Path) -> anyhow::Result<ExitCode> {
    let mut findings = disk::file(path);
    findings.extend(processes::lock(path).await);
    findings.push(processes::watch(path));
    findings.extend(disk::schema(path, SqliteStore::schema()));
    show(options, &findings)?;
    if findings.iter().any(Finding::has_older_schema) {
        let of_disk = disk::device(path, &SystemClock);
        show(options, &of_disk)?;
        findings.extend(of_disk);
        return Ok(exit_code(&findings));
    }
    let store = match store_file::open_file_to_read(options, path).await {
        Ok(store) => store,
        Err(error) => return cannot_open(options, &error),
    };
    let of_file = state::file(&store).await?;
    show(options, &of_file)?;
    let of_state = state::check(&store).await?;
    show(options, &of_state)?;
    let of_disk = disk::device(path, &*store.clock());
    show(options, &of_disk)?;
    findings.extend(of_file.into_iter().chain(of_state).chain(of_disk));
    Ok(exit_code(&findings))
}

#[cfg(feature = "postgres")]
async fn database(options: &GlobalOptions, url: &str) -> anyhow::Result<ExitCode> {
    let store = match store_file::open_existing_server(options, url).await {
        Ok(store) => store,
        Err(error) => {
            let rights = super::server::rights_to_open(url).await;
            show(options, rights.as_slice())?;
            return cannot_open(options, &error);
        }
    };
    let mut findings = super::server::check(&store).await?;
    show(options, &findings)?;
    let of_state = state::check(&store).await?;
    show(options, &of_state)?;
    findings.extend(of_state);
    Ok(exit_code(&findings))
}

fn cannot_open(options: &GlobalOptions, error: &anyhow::Error) -> anyhow::Result<ExitCode> {
    show(options, &[Finding::bad("open", format!("{error:#}"), "nothing more can be checked until it opens")])?;
    Ok(ExitCode::of(error))
}

fn show(options: &GlobalOptions, findings: &[Finding]) -> std::io::Result<()> {
    findings.iter().try_for_each(|finding| if options.json { print_json(&json!(finding)) } else { finding.print() })
}
