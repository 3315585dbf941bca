//! `onward orchestration update`

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use onward::Engine;
use serde_json::Value;

use super::request::RequestArguments;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::print_json;
use crate::store_file;
use crate::values::parse_positive_duration;

/// Arguments of `onward orchestration update`.
#[derive(Debug, Args)]
#[command(override_usage = "onward orchestration update [OPTIONS] <ORCHESTRATION> <NAME> [PAYLOAD]\n       \
    onward orchestration update [OPTIONS] --key <KEY> <NAME> [PAYLOAD]")]
pub(crate) struct Arguments {
    #[command(flatten)]
    request: RequestArguments,
    /// Wait for the reply at most this long; the request may be carried out anyway
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration, default_value = "30s")]
    timeout: Duration,
}

/// Sends a request and prints the reply.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (target, name, payload) = arguments.request.read()?;
    let store = store_file::open_to_stay(options).await?;
    let number = target.record(&*store).await?.id;
    let engine = Engine::builder().store(Arc::clone(&store)).open().await?;
    let answer: Value = engine.update_within(number, &name, &payload, arguments.timeout).await?;
    print_json(&answer)?;
    Ok(ExitCode::Done)
}
