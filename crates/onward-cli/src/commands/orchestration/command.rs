//! The verbs of `onward orchestration`.

use clap::Subcommand;

use super::named::{One, Orchestrations};
use super::{
    cancel, check, delete, export, fork, history, list, pause, query, record, retry, show, signal, start, status,
    terminate, tree, update, wait,
};
use crate::commands::task::Chosen;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start an orchestration; a worker that has its code runs it
    Start(Box<start::Arguments>),
    /// List orchestrations, the newest first
    List(Box<list::Arguments>),
    /// Show all that is known of orchestrations, and what they wait for
    Show(Orchestrations),
    /// Print what orchestrations say of themselves and the values that they keep
    Status(Orchestrations),
    /// Print what happened to an orchestration and what its code did about it, in order
    History(One),
    /// Show orchestrations with their activities and the orchestrations that they started; with
    /// --json each as a list has it, without payload and result
    Tree(Orchestrations),
    /// Send an orchestration something that its code waits for, or will wait for, under a name
    Signal(signal::Arguments),
    /// Ask the code of an orchestration for something, and print its answer
    Update(update::Arguments),
    /// Ask the code of an orchestration something that changes nothing, and print its answer; a
    /// program that has the code replays the history for that
    Query(query::Arguments),
    /// Ask orchestrations to stop: their code may clean up first
    Cancel(Orchestrations),
    /// End orchestrations as cancelled, at once and without a word to their code
    Terminate(terminate::Arguments),
    /// Have orchestrations, by number or by a filter, have no turn; what comes for them is kept
    Pause(Box<Chosen>),
    /// Let paused orchestrations, by number or by a filter, go on
    Resume(Box<Chosen>),
    /// Have orchestrations that have ended go on where they were, when what was wrong is mended
    Retry(Orchestrations),
    /// Start another orchestration that begins with a part of this one's history
    Fork(fork::ForkArguments),
    /// Start another orchestration that begins with a part of this one's history, and takes its key
    /// and its place: this one is terminated
    Reset(fork::ResetArguments),
    /// Write a history to a file, for tests that try new code on it
    Export(export::Arguments),
    /// Write the histories of many orchestrations to files, one for each
    Record(Box<record::Arguments>),
    /// Have a program replay histories with its code, and say with which of them the code does not
    /// go on
    Check(check::Arguments),
    /// Remove orchestrations with their histories, without a trace; one whose turn runs is left
    /// alone
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
