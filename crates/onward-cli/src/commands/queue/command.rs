//! The verbs of `onward queue`.

use clap::{Args, Subcommand};
use onward_store::Name;

use super::{collections, delete, history, list, mode, pause, purge, resume, scope, set, show, wait};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the queues with their sizes
    List,
    /// Show one queue
    Show(Queue),
    /// Show how tasks ended on each of the last days
    History(history::Arguments),
    /// List what is being collected to be handed over as one: it is ripe, if no more comes, at the
    /// time shown, the next first
    Collections(collections::Arguments),
    /// Change the weight or the concurrency of a queue, while everything runs
    Set(set::Arguments),
    /// Show or change how workers choose among queues, while everything runs
    Mode(mode::Arguments),
    /// Stop claims from a queue; what runs goes on
    Pause(pause::Arguments),
    /// End a pause
    Resume(scope::Scoped),
    /// Wait until queues have no task that waits, runs or is scheduled: onward queue wait mail &&
    /// notify-send done
    Wait(wait::Arguments),
    /// Remove tasks of a queue without a trace
    Purge(purge::Arguments),
    /// Forget a queue in which nothing is live; its ended tasks stay in history
    Delete(Queue),
}

/// Which queue.
#[derive(Debug, Args)]
pub(crate) struct Queue {
    /// Its name
    #[arg(value_name = "QUEUE")]
    pub(super) queue: Name,
}

/// Runs a verb.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List => list::run(options).await,
        Command::Show(queue) => show::run(options, queue).await,
        Command::History(arguments) => history::run(options, arguments).await,
        Command::Collections(arguments) => collections::run(options, arguments).await,
        Command::Set(arguments) => set::run(options, arguments).await,
        Command::Mode(arguments) => mode::run(options, arguments).await,
        Command::Pause(arguments) => pause::run(options, arguments).await,
        Command::Resume(arguments) => resume::run(options, arguments).await,
        Command::Wait(arguments) => wait::run(options, arguments).await,
        Command::Purge(arguments) => purge::run(options, arguments).await,
        Command::Delete(queue) => delete::run(options, queue).await,
    }
}
