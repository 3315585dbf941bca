//! The verbs of `onward task`.

use clap::Subcommand;

use super::filter::FilterArguments;
use super::numbers::Tasks;
use super::selection::TaskSelection;
use super::{
    cancel, count, delete, external_completion, follow, kill, list, move_tasks, output, retry, run_now, show, tree,
    wait, why,
};
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
    Cancel(Box<TaskSelection>),
    /// Make ended tasks wait again, with their attempts counted from zero; a filter includes
    /// completed ones only with --state completed
    Retry(Box<TaskSelection>),
    /// Remove tasks permanently, except running ones
    Delete(Box<TaskSelection>),
    /// Make scheduled tasks due now, including those that wait for their next attempt
    Run(Box<TaskSelection>),
    /// End tasks that are not running as dead letters, for inspection or a retry
    Kill(Box<TaskSelection>),
    /// Wait until tasks have ended; exit with 1 if one of them did not complete
    Wait(wait::Arguments),
    /// Show the output of a task as it comes, until the task has ended; exit with 1 if it did not
    /// complete
    Follow(follow::Arguments),
    /// Show the output that is kept of a task: of the last attempt that wrote any
    Output(output::Arguments),
    /// Complete a task whose handler waits for external completion
    Complete(external_completion::CompleteArguments),
    /// Fail an attempt that waits for external completion; the retry policy then applies
    Fail(external_completion::FailArguments),
    /// Extend the time limit of an external completion
    Extend(external_completion::ExtendArguments),
    /// Move tasks to another queue; running ones move when their attempt ends
    Move(Box<move_tasks::Arguments>),
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
        Command::Follow(arguments) => follow::run(options, arguments).await,
        Command::Output(arguments) => output::run(options, arguments).await,
        Command::Complete(arguments) => external_completion::complete(options, arguments).await,
        Command::Fail(arguments) => external_completion::fail(options, arguments).await,
        Command::Extend(arguments) => external_completion::extend(options, arguments).await,
        Command::Move(arguments) => move_tasks::run(options, *arguments).await,
    }
}
