//! The verbs of `onward task`.

use clap::{Args, Subcommand};
use onward_store::TaskId;

use super::chosen::Chosen;
use super::filter::FilterArguments;
use super::{cancel, count, delete, kill, list, retry, run_now, show, tree, wait, why};
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
    /// Show tasks with their children, their children's children and so on
    Tree(Tasks),
    /// End tasks that have not started, and ask running ones to stop
    Cancel(Box<Chosen>),
    /// Make ended tasks wait again, with their attempts counted from zero
    Retry(Box<Chosen>),
    /// Remove tasks without a trace, running ones excepted
    Delete(Box<Chosen>),
    /// Make scheduled tasks due now, also those that wait for their next attempt
    Run(Box<Chosen>),
    /// End tasks that do not run as dead letters, to be looked at and perhaps retried
    Kill(Box<Chosen>),
    /// Wait until tasks have ended; exit with 1 if one of them did not complete
    Wait(wait::Arguments),
}

/// Which tasks.
#[derive(Debug, Args)]
pub(crate) struct Tasks {
    /// Their numbers
    #[arg(value_name = "TASK", required = true)]
    pub(super) tasks: Vec<TaskId>,
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
    }
}
