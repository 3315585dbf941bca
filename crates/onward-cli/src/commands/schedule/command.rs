//! The verbs of `onward schedule`.

use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use onward::Engine;
use onward_store::{Name, Overlap, Store};

use super::{backfill, control, list, next, set, show, trigger};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::store_file;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create or change a schedule; workers fire it (onward work)
    Set(Box<set::Arguments>),
    /// List the schedules
    List,
    /// Show one schedule
    Show(Schedule),
    /// Show the next firings of a schedule
    Next(next::Arguments),
    /// Stop a schedule from firing until it is resumed; tasks that it has submitted continue
    Pause(Schedule),
    /// Let a paused schedule fire again from now on
    Resume(Schedule),
    /// Fire a schedule once now, in addition to its moments
    Trigger(trigger::Arguments),
    /// Fire a schedule for its moments in a range
    Backfill(backfill::Arguments),
    /// Forget a schedule; the tasks that it has submitted stay
    Delete(Schedule),
}

/// The schedule that the user named.
#[derive(Debug, Args)]
pub(crate) struct Schedule {
    /// Its name
    #[arg(value_name = "SCHEDULE")]
    pub(super) schedule: Name,
}

/// The action while the task of the previous firing is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverlapPolicy {
    /// Skip the new firing
    Skip,
    /// Submit the new task anyway
    Allow,
    /// Submit the new task when the active one has ended; only one firing waits, further ones are
    /// skipped
    QueueOne,
    /// Cancel the active task, and submit the new one when it has ended
    CancelRunning,
}

impl From<OverlapPolicy> for Overlap {
    fn from(policy: OverlapPolicy) -> Self {
        match policy {
            OverlapPolicy::Skip => Self::Skip,
            OverlapPolicy::Allow => Self::Allow,
            OverlapPolicy::QueueOne => Self::QueueOne,
            OverlapPolicy::CancelRunning => Self::CancelRunning,
        }
    }
}

/// Runs a verb.
pub(crate) async fn run(options: &GlobalOptions, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Set(arguments) => set::run(options, *arguments).await,
        Command::List => list::run(options).await,
        Command::Show(schedule) => show::run(options, schedule).await,
        Command::Next(arguments) => next::run(options, arguments).await,
        Command::Pause(schedule) => control::pause(options, schedule).await,
        Command::Resume(schedule) => control::resume(options, schedule).await,
        Command::Trigger(arguments) => trigger::run(options, arguments).await,
        Command::Backfill(arguments) => backfill::run(options, arguments).await,
        Command::Delete(schedule) => control::delete(options, schedule).await,
    }
}

/// Opens an engine that reads an existing store.
pub(super) async fn open_to_read(options: &GlobalOptions) -> anyhow::Result<Engine> {
    on(store_file::open_to_read(options).await?).await
}

/// Opens an engine on an existing store.
pub(super) async fn open(options: &GlobalOptions) -> anyhow::Result<Engine> {
    on(store_file::open_to_edit(options, false).await?).await
}

/// Opens an engine on a store. It runs no tasks.
pub(super) async fn on(store: Arc<dyn Store>) -> anyhow::Result<Engine> {
    Ok(Engine::builder().store(store).open().await?)
}
