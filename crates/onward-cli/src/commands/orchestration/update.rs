//! `onward orchestration update`

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use onward::Engine;
use onward_store::TaskId;
use serde_json::Value;

use super::named::check_is_one;
use super::start::read_json;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::print_json;
use crate::store_file;
use crate::values::parse_positive_duration;

/// Arguments of `onward orchestration update`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Its number
    #[arg(value_name = "ORCHESTRATION")]
    number: TaskId,
    /// The name under which its code takes updates
    name: String,
    /// What is asked for, as JSON; - for stdin
    #[arg(default_value = "null", allow_negative_numbers = true)]
    payload: String,
    /// Wait for the answer no longer than this; what was asked for may be done all the same. Default: wait for ever
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    timeout: Option<Duration>,
}

/// Asks for something and prints the answer.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let payload: Value = serde_json::from_slice(&read_json("payload", &arguments.payload)?)?;
    let store = store_file::open_existing(options).await?;
    check_is_one(&*store, arguments.number).await?;
    let engine = Engine::builder().store(Arc::clone(&store)).open().await?;
    let asked = engine.update::<Value, Value>(arguments.number, &arguments.name, &payload);
    let answer = match arguments.timeout {
        None => asked.await?,
        Some(timeout) => tokio::time::timeout(timeout, asked)
            .await
            .map_err(|_| anyhow::anyhow!("no answer came in time; what was asked for may still be done"))??,
    };
    print_json(&answer)?;
    Ok(ExitCode::Done)
}
