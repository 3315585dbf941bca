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
    /// Show all that is known of tasks
    Show(Tasks),
    /// Say why tasks do not run, and what would release them
    Why(Tasks),
    /// Show tasks with their children, their children's children and so on; with --json each as a
    /// list has it, without payload and result
    Tree(Tasks),
    /// End tasks that have not started, and ask running ones to stop
    Cancel(Box<Chosen>),
    /// Make ended tasks wait again, with their attempts counted from zero; with a filter, completed
    /// ones only if it has --state completed
    Retry(Box<Chosen>),
    /// Remove tasks without a trace, running ones excepted
    Delete(Box<Chosen>),
    /// Make scheduled tasks due now, also those that wait for their next attempt
    Run(Box<Chosen>),
    /// End tasks that do not run as dead letters, to be looked at and perhaps retried
    Kill(Box<Chosen>),
    /// Wait until tasks have ended; exit with 1 if one of them did not complete
    Wait(wait::Arguments),
    /// Complete a task whose handler has left it to be finished from elsewhere
    Complete(finish::CompleteArguments),
    /// Fail an attempt that is to be finished from elsewhere; the retry policy says what follows
    Fail(finish::FailArguments),
    /// Give more time to whoever finishes an attempt from elsewhere
    Extend(finish::ExtendArguments),
    /// Move tasks to another queue, running ones when their attempt is over
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
