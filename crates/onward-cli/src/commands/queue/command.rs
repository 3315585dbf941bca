//! The verbs of `onward queue`.

use clap::{Args, Subcommand};
use onward_store::Name;

use super::{delete, history, list, mode, pause, pending_batches, purge, resume, scope, set, show, wait};
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
    /// List the pending batches, the next first, each with the time at which it is ready if no more
    /// tasks are added
    Batches(pending_batches::Arguments),
    /// Change the weight, the concurrency or the affinity wait of a queue, while workers run
    Set(set::Arguments),
    /// Show or change how workers choose among queues, while workers run
    Mode(mode::Arguments),
    /// Stop claims from a queue; running tasks continue
    Pause(pause::Arguments),
    /// End a pause
    Resume(scope::Scoped),
    /// Wait until queues have no live tasks: onward queue wait mail && notify-send done
    Wait(wait::Arguments),
    /// Remove tasks of a queue permanently
    Purge(purge::Arguments),
    /// Forget a queue without live tasks; its ended tasks stay in history
    Delete(Queue),
}

/// The queue that the user named.
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
        Command::Batches(arguments) => pending_batches::run(options, arguments).await,
        Command::Set(arguments) => set::run(options, arguments).await,
        Command::Mode(arguments) => mode::run(options, arguments).await,
        Command::Pause(arguments) => pause::run(options, arguments).await,
        Command::Resume(arguments) => resume::run(options, arguments).await,
        Command::Wait(arguments) => wait::run(options, arguments).await,
        Command::Purge(arguments) => purge::run(options, arguments).await,
        Command::Delete(queue) => delete::run(options, queue).await,
    }
}
