//! The verbs of `onward orchestration`.

use clap::Subcommand;

use super::control::{cancel, delete, fork, pause, retry, start, terminate};
use super::messages::{signal, update};
use super::reading::{history, list, show, status, tree, wait};
use super::replay::{check, export, query, record};
use super::selection::{OneOrchestration, Orchestrations};
use crate::commands::task::TaskSelection;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start an orchestration; a worker that has its code runs it
    Start(Box<start::Arguments>),
    /// List orchestrations, the newest first
    List(Box<list::Arguments>),
    /// Show all facts of orchestrations, and what they wait for
    Show(Orchestrations),
    /// Print the status and the values that orchestrations have set
    Status(Orchestrations),
    /// Print the events of an orchestration and the reactions of its code, in order
    History(OneOrchestration),
    /// Show orchestrations with their activities and the orchestrations that they started; with
    /// --json each as in a list, without payload and result
    Tree(Orchestrations),
    /// Send a named signal to an orchestration, which its code receives now or later
    Signal(signal::Arguments),
    /// Send a request to the code of an orchestration, and print its reply
    Update(update::Arguments),
    /// Query the state of an orchestration without changing it; a program that has the code replays
    /// the history for this
    Query(query::Arguments),
    /// Ask orchestrations to stop; their code may clean up first
    Cancel(Orchestrations),
    /// End orchestrations as cancelled at once, without running their code
    Terminate(terminate::Arguments),
    /// Pause orchestrations, by number or by a filter: they run no turn, and messages to them are
    /// kept
    Pause(Box<TaskSelection>),
    /// Resume paused orchestrations, by number or by a filter
    Resume(Box<TaskSelection>),
    /// Let ended orchestrations continue where they stopped, after the cause of the failure is
    /// fixed
    Retry(Orchestrations),
    /// Start another orchestration that begins with a part of this one's history
    Fork(fork::ForkArguments),
    /// Start another orchestration that begins with a part of this one's history and takes over its
    /// key and its place; this one is terminated
    Reset(fork::ResetArguments),
    /// Write a history to a file, for tests of new code
    Export(export::Arguments),
    /// Write the histories of many orchestrations to files, one for each
    Record(Box<record::Arguments>),
    /// Let a program replay histories with its code, and report those that the code cannot continue
    Check(check::Arguments),
    /// Remove orchestrations with their histories permanently, except those whose turn is running
    Delete(Orchestrations),
    /// Wait until orchestrations have ended; exit with 1 if one of them did not complete
    Wait(wait::Arguments),
}

/// Runs a verb.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Start(arguments) => start::run(options, *arguments).await,
        Command::List(arguments) => list::run(options, *arguments).await,
        Command::Show(named) => show::run(options, named).await,
        Command::Status(named) => status::run(options, named).await,
        Command::History(one) => history::run(options, one).await,
        Command::Tree(named) => tree::run(options, named).await,
        Command::Signal(arguments) => signal::run(options, arguments).await,
        Command::Update(arguments) => update::run(options, arguments).await,
        Command::Query(arguments) => query::run(options, arguments).await,
        Command::Cancel(named) => cancel::run(options, named).await,
        Command::Terminate(arguments) => terminate::run(options, arguments).await,
        Command::Retry(named) => retry::run(options, named).await,
        Command::Fork(arguments) => fork::fork(options, arguments).await,
        Command::Reset(arguments) => fork::reset(options, arguments).await,
        Command::Export(arguments) => export::run(options, arguments).await,
        Command::Pause(chosen) => pause::pause(options, *chosen).await,
        Command::Resume(chosen) => pause::resume(options, *chosen).await,
        Command::Record(arguments) => record::run(options, *arguments).await,
        Command::Check(arguments) => check::run(options, arguments).await,
        Command::Delete(named) => delete::run(options, named).await,
        Command::Wait(arguments) => wait::run(options, arguments).await,
    }
}
