//! `onward workflow signal`

use clap::Args;
use onward::Engine;
use onward_store::TaskId;
use serde_json::{Value, json};

use crate::commands::run::read_value;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Arguments of `onward workflow signal`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The number of the run
    #[arg(value_name = "RUN")]
    run: TaskId,
    /// The name of the signal
    #[arg(value_name = "NAME")]
    name: String,
    /// The value: JSON, @FILE, or NAME=VALUE for one field; repeat to add fields. Default: null
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    value: Vec<String>,
}

/// Sends a signal to a run, which a step takes now or later.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let engine = Engine::builder().store(store_file::open_existing(options).await?).open().await?;
    let Arguments { run, name, value } = arguments;
    let view = engine.run_view(run).await?;
    let asks = view.steps.iter().find(|step| step.signal.as_deref() == Some(&name));
    let value: Value = read_value("--value", &value, asks.and_then(|step| step.reply_schema.as_ref()))?;
    engine.signal_run(run, &name, &value).await?;
    if options.json {
        print_json(&json!({ "id": run, "outcome": "sent", "name": name }))?;
    } else {
        print_line(format_args!("`{name}` was sent to run {run}"))?;
    }
    Ok(ExitCode::Done)
}
