//! The verbs of `onward task`.

use clap::Subcommand;

use super::chosen::Chosen;
use super::filter::FilterArguments;
use super::named::Tasks;
use super::{cancel, count, delete, finish, kill, list, moving, retry, run_now, show, tree, wait, why};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List tasks, the newest first
    List(Box<list::Arguments>),
    /// Count tasks
    Count(Box<FilterArguments>),
    /// Show all facts of tasks
    Show(Tasks),
    /// Explain why tasks do not run, and what would release them
    Why(Tasks),
    /// Show tasks with all their descendants; with --json each as in a list, without payload and
    /// result
    Tree(Tasks),
    /// End tasks that have not started, and ask running ones to stop
    Cancel(Box<Chosen>),
    /// Make ended tasks wait again, with their attempts counted from zero; a filter includes
    /// completed ones only with --state completed
    Retry(Box<Chosen>),
    /// Remove tasks permanently, except running ones
    Delete(Box<Chosen>),
    /// Make scheduled tasks due now, including those that wait for their next attempt
    Run(Box<Chosen>),
    /// End tasks that are not running as dead letters, for inspection or a retry
    Kill(Box<Chosen>),
    /// Wait until tasks have ended; exit with 1 if one of them did not complete
    Wait(wait::Arguments),
    /// Complete a task whose handler waits for external completion
    Complete(finish::CompleteArguments),
    /// Fail an attempt that waits for external completion; the retry policy then applies
    Fail(finish::FailArguments),
    /// Extend the time limit of an external completion
    Extend(finish::ExtendArguments),
    /// Move tasks to another queue; running ones move when their attempt ends
    Move(Box<moving::Arguments>),
}

/// Runs a verb.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(arguments) => list::run(options, *arguments).await,
        Command::Count(arguments) => count::run(options, *arguments).await,
        Command::Show(tasks) => show::run(options, tasks).await,
        Command::Why(tasks) => why::run(options, tasks).await,
        Command::Cancel(chosen) => cancel::run(options, *chosen).await,
        Command::Retry(chosen) => retry::run(options, *chosen).await,
        Command::Delete(chosen) => delete::run(options, *chosen).await,
        Command::Run(chosen) => run_now::run(options, *chosen).await,
        Command::Kill(chosen) => kill::run(options, *chosen).await,
        Command::Tree(tasks) => tree::run(options, tasks).await,
        Command::Wait(arguments) => wait::run(options, arguments).await,
        Command::Complete(arguments) => finish::complete(options, arguments).await,
        Command::Fail(arguments) => finish::fail(options, arguments).await,
        Command::Extend(arguments) => finish::extend(options, arguments).await,
        Command::Move(arguments) => moving::run(options, *arguments).await,
    }
}
