//! `onward orchestration update`

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use onward::Engine;
use onward_store::{Name, TaskId};
use serde_json::Value;

use super::named::One;
use super::start::read_json;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::print_json;
use crate::store_file;
use crate::values::parse_positive_duration;

/// Arguments of `onward orchestration update`.
#[derive(Debug, Args)]
#[command(override_usage = "onward orchestration update [OPTIONS] <ORCHESTRATION> <NAME> [PAYLOAD]\n       \
    onward orchestration update [OPTIONS] --key <KEY> <NAME> [PAYLOAD]")]
pub(crate) struct Arguments {
    /// Its number (not with --key), the name under which its code takes updates, and what is asked for, as JSON (- for stdin; default: null)
    #[arg(value_name = "ORCHESTRATION|NAME|PAYLOAD", required = true, num_args = 1..=3, allow_negative_numbers = true)]
    words: Vec<String>,
    /// The orchestration with this key, instead of a number: the live one, else the newest
    #[arg(long)]
    key: Option<String>,
    /// With --key: only of this kind
    #[arg(long, requires = "key")]
    kind: Option<Name>,
    /// Wait for the answer no longer than this; what was asked for may be done all the same. Default: wait for ever
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    timeout: Option<Duration>,
}

impl Arguments {
    /// The number, if there is one, the name, and the payload.
    fn what(&self) -> anyhow::Result<(Option<TaskId>, &str, &str)> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match (&self.key, words.as_slice()) {
            (Some(_), [name]) => Ok((None, name, "null")),
            (Some(_), [name, payload]) => Ok((None, name, payload)),
            (None, [number, name]) => Ok((Some(number_of(number)?), name, "null")),
            (None, [number, name, payload]) => Ok((Some(number_of(number)?), name, payload)),
            _ => Err(wrong_usage(
                "say of which orchestration (its number, or --key), under which name, and perhaps a payload",
            )),
        }
    }
}

fn number_of(text: &str) -> anyhow::Result<TaskId> {
    text.parse().map_err(|error| {
        wrong_usage(format!("`{text}` is not the number of an orchestration ({error}); or name it by --key"))
    })
}

/// Asks for something and prints the answer.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (number, name, payload) = arguments.what()?;
    let payload: Value = serde_json::from_slice(&read_json("payload", payload)?)?;
    let store = store_file::open_existing(options).await?;
    let asked_of = One::either(number, arguments.key.clone(), arguments.kind.clone());
    let number = asked_of.record(&*store).await?.id;
    let engine = Engine::builder().store(Arc::clone(&store)).open().await?;
    let asked = engine.update::<Value, Value>(number, name, &payload);
    let answer = match arguments.timeout {
        None => asked.await?,
        Some(timeout) => tokio::time::timeout(timeout, asked)
            .await
            .map_err(|_| anyhow::anyhow!("no answer came in time; what was asked for may still be done"))??,
    };
    print_json(&answer)?;
    Ok(ExitCode::Done)
}
