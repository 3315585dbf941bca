//! `onward task complete`, `onward task fail` and `onward task extend`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onward_store::rules::retry::FailureClass;
use onward_store::{CompletionToken, Finish, Outcome, Write};
use serde_json::json;

use crate::apply::{apply_one, unexpected};
use crate::commands::submit::read_payload;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;
use crate::values::parse_positive_duration;

/// Arguments of `onward task complete`.
#[derive(Debug, Args)]
pub(crate) struct CompleteArguments {
    /// The token that its handler gave out, such as 17.3, or the task's number
    #[arg(value_name = "TOKEN")]
    token: CompletionToken,
    /// A file that holds the result; `-` for standard input
    #[arg(long, value_name = "FILE")]
    result: Option<PathBuf>,
}

/// Arguments of `onward task fail`.
#[derive(Debug, Args)]
pub(crate) struct FailArguments {
    /// The token that its handler gave out, such as 17.3, or the task's number
    #[arg(value_name = "TOKEN")]
    token: CompletionToken,
    /// What went wrong
    #[arg(long, value_name = "TEXT")]
    error: String,
    /// Trying again cannot help
    #[arg(long)]
    permanent: bool,
}

/// Arguments of `onward task extend`.
#[derive(Debug, Args)]
pub(crate) struct ExtendArguments {
    /// The token that its handler gave out, such as 17.3, or the task's number
    #[arg(value_name = "TOKEN")]
    token: CompletionToken,
    /// How long from now; default: for ever
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    within: Option<Duration>,
}

/// Completes a task that waits for it.
pub(crate) async fn complete(options: &GlobalOptions, arguments: CompleteArguments) -> anyhow::Result<ExitCode> {
    let result = match arguments.result.as_deref() {
        Some(path) if path.as_os_str() == "-" => Some(read_payload("--result", None, Some("-"))?),
        Some(path) => Some(read_payload("--result", Some(path), None)?),
        None => None,
    };
    finish(options, arguments.token, Finish::Complete { result }).await
}

/// Fails an attempt that waits to be finished.
pub(crate) async fn fail(options: &GlobalOptions, arguments: FailArguments) -> anyhow::Result<ExitCode> {
    let class = if arguments.permanent { FailureClass::Permanent } else { FailureClass::Retryable };
    finish(options, arguments.token, Finish::Fail { error: arguments.error, class }).await
}

/// Gives whoever finishes an attempt more time.
pub(crate) async fn extend(options: &GlobalOptions, arguments: ExtendArguments) -> anyhow::Result<ExitCode> {
    finish(options, arguments.token, Finish::Extend { within: arguments.within }).await
}

async fn finish(options: &GlobalOptions, token: CompletionToken, finish: Finish) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    let state = match apply_one(&*store, Write::Finish { token, finish }).await? {
        Outcome::Finished { state } => state,
        other => return Err(unexpected(other)),
    };
    if options.json {
        print_json(&json!({ "id": token.task, "state": state }))?;
    } else {
        print_line(format_args!("task {} is {state}", token.task))?;
    }
    Ok(ExitCode::Done)
}
