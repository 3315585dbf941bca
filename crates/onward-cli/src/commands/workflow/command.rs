//! The verbs of `onward workflow`.

use std::sync::Arc;

use clap::Subcommand;
use onward::Engine;
use onward_store::Store;

use super::runs::{self, action, compare, critical_path, events, fork, history, pause, signal, start, status};
use super::{check, diff, generate, graph, import_tasker, list, prune, put, show, test};
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
    /// Remove stored templates that are not the newest of their name and that no run pins
    Prune(prune::Arguments),
    /// Print the graph of a template as a Mermaid diagram
    Graph(graph::Arguments),
    /// Print typed code for the handlers of a template
    Generate(generate::Arguments),
    /// Print a template of Tasker as one of Onward, and list the lines that are left out
    ImportTasker(import_tasker::Arguments),
    /// Play the cases of test files without handlers and without waiting; exit with 1 if one fails
    Test(test::Arguments),
    /// Start a run of a stored template; a process that runs workflows runs it
    Start(Box<start::Arguments>),
    /// List runs, the newest first
    Runs(runs::list::Arguments),
    /// Show the steps of runs, and the questions that they ask people
    Status(status::Arguments),
    /// Print the events of a run in order, with the authors of actions and their reasons
    History(history::Arguments),
    /// Show the events that runs published to the log, with their payloads
    Events(events::Arguments),
    /// Send a signal to a run, such as the reply to a question
    Signal(signal::Arguments),
    /// Start a run with the results of another one, from some steps on
    Fork(fork::Arguments),
    /// Compare two runs: templates, inputs, and the states, results and times of steps
    Compare(compare::Arguments),
    /// Show the chain of steps that determined the duration of a run, and the slack of the others
    CriticalPath(critical_path::Arguments),
    /// Ask what runs to stop, and end the run when it has
    Cancel(action::Cancel),
    /// Run steps again that ended badly or were cancelled, with all behind them, or an undo that
    /// failed
    Retry(action::Retry),
    /// Run a step again that ended in any way, and all behind it
    Reset(action::OneStep),
    /// Take a bad step, or an undo that failed, as mended by hand
    Resolve(action::OneStep),
    /// Complete a step with a result
    Complete(action::Complete),
    /// Skip a step that has not ended, or that ended badly
    Skip(action::OneStep),
    /// Undo what a run did that has stopped
    Undo(action::Undo),
    /// Pause runs: no step starts, and what arrives is kept
    Pause(pause::Arguments),
    /// Resume paused runs
    Resume(pause::Arguments),
}

/// Runs a verb.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check(arguments) => check::run(options, &arguments),
        Command::Put(arguments) => put::run(options, &arguments).await,
        Command::List => list::run(options).await,
        Command::Show(arguments) => show::run(options, arguments).await,
        Command::Diff(arguments) => diff::run(options, arguments).await,
        Command::Prune(arguments) => prune::run(options, &arguments).await,
        Command::Graph(arguments) => graph::run(options, arguments).await,
        Command::Generate(arguments) => generate::run(options, arguments).await,
        Command::ImportTasker(arguments) => import_tasker::run(options, &arguments),
        Command::Test(arguments) => test::run(options, &arguments).await,
        Command::Start(arguments) => start::run(options, *arguments).await,
        Command::Runs(arguments) => runs::list::run(options, arguments).await,
        Command::Status(arguments) => status::run(options, arguments).await,
        Command::History(arguments) => history::run(options, arguments).await,
        Command::Events(arguments) => events::run(options, arguments).await,
        Command::Signal(arguments) => signal::run(options, arguments).await,
        Command::Fork(arguments) => fork::run(options, arguments).await,
        Command::Compare(arguments) => compare::run(options, arguments).await,
        Command::CriticalPath(arguments) => critical_path::run(options, arguments).await,
        Command::Cancel(arguments) => action::cancel(options, arguments).await,
        Command::Retry(arguments) => action::retry(options, arguments).await,
        Command::Reset(arguments) => action::reset(options, arguments).await,
        Command::Resolve(arguments) => action::resolve(options, arguments).await,
        Command::Complete(arguments) => action::complete(options, arguments).await,
        Command::Skip(arguments) => action::skip(options, arguments).await,
        Command::Undo(arguments) => action::undo(options, arguments).await,
        Command::Pause(arguments) => pause::pause(options, arguments).await,
        Command::Resume(arguments) => pause::resume(options, arguments).await,
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
