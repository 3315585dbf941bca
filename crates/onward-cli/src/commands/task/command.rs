//! The verbs of `onward task`.

use clap::{Args, Subcommand};
use onward_store::TaskId;

use super::{cancel, list, retry, show, tree, wait};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List tasks, the newest first
    List(list::Arguments),
    /// Show all that is known of tasks
    Show(Tasks),
    /// Show tasks with their children, their children's children and so on
    Tree(Tasks),
    /// End tasks that have not started, and ask running ones to stop
    Cancel(Tasks),
    /// Make ended tasks wait again, with their attempts counted from zero
    Retry(Tasks),
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
        Command::List(arguments) => list::run(options, arguments).await,
        Command::Show(tasks) => show::run(options, tasks).await,
        Command::Tree(tasks) => tree::run(options, tasks).await,
        Command::Cancel(tasks) => cancel::run(options, tasks).await,
        Command::Retry(tasks) => retry::run(options, tasks).await,
        Command::Wait(arguments) => wait::run(options, arguments).await,
    }
}
