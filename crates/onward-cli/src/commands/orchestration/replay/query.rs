//! `onward orchestration query`

use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use onward::Engine;
use serde::Deserialize;
use serde_json::Value;

use super::program::{Program, REMEDY};
use crate::commands::orchestration::messages::request::RequestArguments;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::print_json;
use crate::store_file;

/// Arguments of `onward orchestration query`.
#[derive(Debug, Args)]
#[command(
    override_usage = "onward orchestration query [OPTIONS] --program <PROGRAM> <ORCHESTRATION> <NAME> [PAYLOAD]\n       \
    onward orchestration query [OPTIONS] --program <PROGRAM> --key <KEY> <NAME> [PAYLOAD]"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    request: RequestArguments,
    #[command(flatten)]
    program: Program,
}

/// The program's output: one of the two.
#[derive(Debug, Deserialize)]
struct ProgramOutput {
    answer: Option<Value>,
    error: Option<String>,
}

/// Runs a program that replays the current history, and prints the reply of its code.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (target, name, question) = arguments.request.read()?;
    let store = store_file::open_to_read(options).await?;
    let number = target.record(&*store).await?.id;
    let recorded = Engine::builder().store(Arc::clone(&store)).open().await?.record_history(number).await?;
    let file = tempfile::NamedTempFile::new().context("cannot make a file for the history; set TMPDIR")?;
    tokio::fs::write(file.path(), recorded.to_bytes()?).await.context("the history could not be written")?;
    let words = ["--query".as_ref(), name.as_ref(), question.to_string().as_ref(), file.path().as_os_str()]
        .map(std::ffi::OsStr::to_owned);
    let printed = arguments.program.run(&words).await?;
    let output: ProgramOutput = serde_json::from_str(printed.trim()).with_context(|| {
        format!("{} printed `{}`, which is not a reply; {REMEDY}", arguments.program, printed.trim())
    })?;
    match output.error {
        Some(error) => anyhow::bail!(error),
        None => print_json(&output.answer)?,
    }
    Ok(ExitCode::Done)
}
