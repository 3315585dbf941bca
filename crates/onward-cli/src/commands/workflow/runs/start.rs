//! `onward workflow start`

use clap::Args;
use onward::Engine;
use onward::workflow::{RunStart, StartedRun};
use onward_store::StoreReads;
use serde_json::json;

use crate::commands::run::read_input;
use crate::commands::submit;
use crate::commands::workflow::reference::Reference;
use crate::commands::workflow::{CARRIER_REMEDY, carriers};
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line, remark};
use crate::store_file;

/// Arguments of `onward workflow start`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The name of a stored template, and a label unless the newest is meant
    #[arg(value_name = "NAME[@LABEL]")]
    template: Reference,
    /// Input of the run: a JSON object, @FILE with one, or NAME=VALUE for one field; repeat to add
    /// fields
    #[arg(long, short, value_name = "INPUT")]
    input: Vec<String>,
    /// Environment of the template to run in
    #[arg(long, value_name = "NAME")]
    env: Option<String>,
    /// A key that only one live run of this workflow can have, for a template that makes none
    #[arg(long)]
    key: Option<String>,
    /// Wait for the end and print the result; exit with 1 if it did not complete
    #[arg(long)]
    wait: bool,
}

const AFTER_HELP: &str = "\
The command runs nothing: a process that runs workflows on this store does, such as `onward work --workflows` or a
program with Engine::runs_workflows. `onward run FILE` runs the workflow of a file here and now.";

/// Starts a run of a stored template.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let store = if arguments.wait {
        store_file::open_to_stay(options).await?
    } else {
        store_file::open_existing(options).await?
    };
    let engine = Engine::builder().store(store.clone()).open().await?;
    let started = start(&engine, &arguments).await?.await?;
    if started.has_other_input {
        return Err(wrong_usage(format!(
            "run {} has the same key and another input; change the input or the key, or wait for its end",
            started.id
        )));
    }
    if arguments.wait {
        return submit::wait(options, &*store, started.id).await;
    }
    print(options, &arguments.template, started)?;
    let record = store.task(started.id).await?;
    if let Some(record) = record.filter(|record| !record.state.is_ended())
        && carriers(&*store, &record.queue, &record.kind).await?.is_empty()
    {
        remark(format_args!("no process carries run {} on; {CARRIER_REMEDY}", started.id));
    }
    Ok(ExitCode::Done)
}

async fn start(engine: &Engine, arguments: &Arguments) -> anyhow::Result<RunStart> {
    let file = arguments.template.find(engine).await?.read()?;
    let template = arguments.env.as_deref().and_then(|name| file.in_environment(name));
    let input = read_input(&arguments.input, template.unwrap_or_else(|| file.template()))?;
    let mut start = engine.start_run(arguments.template.name()).input(&input);
    if let Some(label) = arguments.template.label() {
        start = start.version(label);
    }
    if let Some(environment) = &arguments.env {
        start = start.environment(environment);
    }
    if let Some(key) = &arguments.key {
        start = start.key(key);
    }
    Ok(start)
}

fn print(options: &GlobalOptions, template: &Reference, started: StartedRun) -> anyhow::Result<()> {
    let StartedRun { id, is_new, .. } = started;
    if options.json {
        print_json(&json!({ "id": id, "workflow": template.name(), "is_new": is_new }))?;
    } else if is_new {
        print_line(format_args!("run {id} of {template} started"))?;
    } else {
        print_line(format_args!("run {id} of {template} has the key already; nothing was changed"))?;
    }
    Ok(())
}
