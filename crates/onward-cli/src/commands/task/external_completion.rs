//! `onward task complete`, `onward task fail` and `onward task extend`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onward_store::rules::retry::FailureClass;
use onward_store::{CompletionToken, ExternalCompletion, Outcome, Write};
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
    /// The token from the handler, such as 17.3, or the task's number
    #[arg(value_name = "TOKEN")]
    token: CompletionToken,
    /// A file with the result; `-` for standard input
    #[arg(long, value_name = "FILE")]
    result: Option<PathBuf>,
}

/// Arguments of `onward task fail`.
#[derive(Debug, Args)]
pub(crate) struct FailArguments {
    /// The token from the handler, such as 17.3, or the task's number
    #[arg(value_name = "TOKEN")]
    token: CompletionToken,
    /// The error message
    #[arg(long, value_name = "TEXT")]
    error: String,
    /// Mark the failure as permanent, so that the task is not retried
    #[arg(long)]
    permanent: bool,
}

/// Arguments of `onward task extend`.
#[derive(Debug, Args)]
pub(crate) struct ExtendArguments {
    /// The token from the handler, such as 17.3, or the task's number
    #[arg(value_name = "TOKEN")]
    token: CompletionToken,
    /// Time from now; default: unlimited
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    within: Option<Duration>,
}

/// Completes a task that waits for external completion.
pub(crate) async fn complete(options: &GlobalOptions, arguments: CompleteArguments) -> anyhow::Result<ExitCode> {
    let result = match arguments.result.as_deref() {
        Some(path) if path.as_os_str() == "-" => Some(read_payload("--result", None, Some("-"))?),
        Some(path) => Some(read_payload("--result", Some(path), None)?),
        None => None,
    };
    complete_externally(options, arguments.token, ExternalCompletion::Complete { result }).await
}

/// Fails an attempt that waits for external completion.
pub(crate) async fn fail(options: &GlobalOptions, arguments: FailArguments) -> anyhow::Result<ExitCode> {
    let class = if arguments.permanent { FailureClass::Permanent } else { FailureClass::Retryable };
    complete_externally(options, arguments.token, ExternalCompletion::Fail { error: arguments.error, class }).await
}

/// Extends the time limit of an external completion.
pub(crate) async fn extend(options: &GlobalOptions, arguments: ExtendArguments) -> anyhow::Result<ExitCode> {
    complete_externally(options, arguments.token, ExternalCompletion::Extend { within: arguments.within }).await
}

async fn complete_externally(
    options: &GlobalOptions,
    token: CompletionToken,
    completion: ExternalCompletion,
) -> anyhow::Result<ExitCode> {
    let store = store_file::open_existing(options).await?;
    let state = match apply_one(&*store, Write::CompleteExternally { token, completion }).await? {
        Outcome::CompletedExternally { state } => state,
        other => return Err(unexpected(other)),
    };
    if options.json {
        print_json(&json!({ "id": token.task, "state": state }))?;
    } else {
        print_line(format_args!("task {} is {state}", token.task))?;
    }
    Ok(ExitCode::Done)
}
