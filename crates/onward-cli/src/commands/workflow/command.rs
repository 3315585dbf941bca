//! The verbs of `onward workflow`.

use std::sync::Arc;

use clap::Subcommand;
use onward::Engine;
use onward_store::Store;

use super::{check, diff, graph, list, put, show};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::store_file;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Report every error of templates; needs no store
    Check(check::Arguments),
    /// Store templates, each as the newest of its name
    Put(put::Arguments),
    /// List the stored templates
    List,
    /// Show a stored template
    Show(show::Arguments),
    /// Show the lines in which two stored templates differ
    Diff(diff::Arguments),
    /// Print the graph of a template as a Mermaid diagram
    Graph(graph::Arguments),
}

/// Runs a verb.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check(arguments) => check::run(options, &arguments),
        Command::Put(arguments) => put::run(options, &arguments).await,
        Command::List => list::run(options).await,
        Command::Show(arguments) => show::run(options, arguments).await,
        Command::Diff(arguments) => diff::run(options, arguments).await,
        Command::Graph(arguments) => graph::run(options, arguments).await,
    }
}

/// Opens an engine that reads an existing store.
pub(super) async fn open_to_read(options: &GlobalOptions) -> anyhow::Result<Engine> {
    on(store_file::open_to_read(options).await?).await
}

/// Opens an engine on a store, which is created if it is missing.
pub(super) async fn open_or_create(options: &GlobalOptions) -> anyhow::Result<Engine> {
    on(store_file::open_or_create(options).await?).await
}

/// Opens an engine on a store. It runs no tasks.
async fn on(store: Arc<dyn Store>) -> anyhow::Result<Engine> {
    Ok(Engine::builder().store(store).open().await?)
}
