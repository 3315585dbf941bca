//! `onward orchestration export`

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use onward::Engine;
use onward_server::gateway::history_json;
use serde_json::json;

use crate::commands::orchestration::selection::OneOrchestration;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{UsedFiles, counted, print_json, print_line};
use crate::store_file;

/// Arguments of `onward orchestration export`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    orchestration: OneOrchestration,
    /// The file to write. If its name ends with .json, it has the events as workers in other
    /// languages read them; otherwise it is for programs in Rust
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

/// Writes the history of an orchestration to a file, for tests of new code.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    UsedFiles::of_store(&options.store).add_output("--output", &arguments.output)?;
    let store = store_file::open_to_read(options).await?;
    let Arguments { orchestration, output } = arguments;
    let id = orchestration.record(&*store).await?.id;
    let recorded = Engine::builder().store(Arc::clone(&store)).open().await?.record_history(id).await?;
    let events = recorded.events.len();
    let bytes = if output.extension().is_some_and(|extension| extension == "json") {
        let history = history_json(&recorded).map_err(|error| anyhow::anyhow!("orchestration {id}: {error}"))?;
        serde_json::to_vec(&history)?
    } else {
        recorded.to_bytes()?
    };
    tokio::fs::write(&output, bytes)
        .await
        .with_context(|| format!("the file {} could not be written", output.display()))?;
    if options.json {
        print_json(&json!({ "id": id, "events": events, "file": output }))?;
    } else {
        let events = counted(events as u64, "event");
        print_line(format_args!("{events} of orchestration {id} written to {}", output.display()))?;
    }
    Ok(ExitCode::Done)
}
