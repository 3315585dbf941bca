//! `onward orchestration check`

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::program::{Program, REMEDY};
use super::record::EXTENSION;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{Align, Table, optional, print_json, print_line, print_table, remark};

/// The number of files per run of the program.
const FILES: usize = 256;

/// Arguments of `onward orchestration check`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    /// Files with histories as `record` and `export` write them, or directories of such files (only
    /// those that end with .cbor are read)
    #[arg(value_name = "HISTORIES", required = true)]
    histories: Vec<PathBuf>,
}

/// The program's report on one history.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    file: PathBuf,
    kind: Option<String>,
    events: Option<u64>,
    agrees: bool,
    error: Option<String>,
}

/// Runs a program that replays histories with its code, and reports which of them the code can
/// continue.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let files = files(&arguments.histories)?;
    let mut reports = Vec::with_capacity(files.len());
    for files in files.chunks(FILES) {
        reports.extend(check(&arguments.program, files).await?);
    }
    if reports.len() != files.len() {
        let (reported, program) = (reports.len(), &arguments.program);
        anyhow::bail!("{program} reported {reported} of {} histories; {REMEDY}", files.len());
    }
    let failed = reports.iter().filter(|report| !report.agrees).count();
    if options.json {
        reports.iter().try_for_each(print_json)?;
    } else {
        print_table(table(&reports))?;
        for report in reports.iter().filter(|report| !report.agrees) {
            let error = report.error.as_deref().unwrap_or("the program gave no reason");
            print_line(format_args!("{}: {error}", report.file.display()))?;
        }
    }
    if failed > 0 {
        remark(format_args!("the code cannot continue {failed} of {} histories", reports.len()));
        return Ok(ExitCode::Failed);
    }
    Ok(ExitCode::Done)
}

/// Returns the files to check, those of a directory sorted by name.
fn files(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let unread = || format!("the directory {} could not be read", path.display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path).with_context(unread)? {
            let file = entry.with_context(unread)?.path();
            found.extend(file.extension().is_some_and(|extension| extension == EXTENSION).then_some(file));
        }
        found.sort();
        files.extend(found);
    }
    if files.is_empty() {
        return Err(wrong_usage(format!(
            "there is no history there: no file whose name ends with .{EXTENSION}; `onward orchestration record` writes some"
        )));
    }
    Ok(files)
}

/// Runs the program on some files.
async fn check(program: &Program, files: &[PathBuf]) -> anyhow::Result<Vec<Report>> {
    let files: Vec<OsString> = files.iter().map(|file| file.clone().into_os_string()).collect();
    let printed = program.run(&files).await?;
    printed.lines().filter(|line| !line.trim().is_empty()).map(|line| read(program, line)).collect()
}

fn read(program: &Program, line: &str) -> anyhow::Result<Report> {
    serde_json::from_str(line)
        .with_context(|| format!("{program} printed `{line}`, which is not a report of a check; {REMEDY}"))
}

fn table(reports: &[Report]) -> Table {
    let mut table =
        Table::new([("FILE", Align::Left), ("KIND", Align::Left), ("EVENTS", Align::Right), ("THE CODE", Align::Left)]);
    for report in reports {
        table.row([
            report.file.display().to_string(),
            optional(report.kind.as_deref(), ToOwned::to_owned),
            optional(report.events, |events| events.to_string()),
            if report.agrees { "continues it" } else { "cannot continue" }.to_owned(),
        ]);
    }
    table
}
