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
    /// Make a schedule, or change the one of that name; workers fire it (onward work)
    Set(Box<set::Arguments>),
    /// List the schedules
    List,
    /// Show one schedule
    Show(Schedule),
    /// Show when a schedule fires next
    Next(next::Arguments),
    /// Let a schedule fire no more until it is resumed; what it has submitted goes on
    Pause(Schedule),
    /// Let a paused schedule fire again, from now on
    Resume(Schedule),
    /// Fire a schedule once, now, beside its moments
    Trigger(trigger::Arguments),
    /// Fire a schedule for its moments in a range
    Backfill(backfill::Arguments),
    /// Forget a schedule; the tasks that it has submitted stay
    Delete(Schedule),
}

/// Which schedule.
#[derive(Debug, Args)]
pub(crate) struct Schedule {
    /// Its name
    #[arg(value_name = "SCHEDULE")]
    pub(super) schedule: Name,
}

/// What to do while the task of the firing before is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverlapPolicy {
    /// Leave the new one out
    Skip,
    /// Submit the new one all the same
    Allow,
    /// Submit the new one when the task has ended; one waits so, further ones are left out
    QueueOne,
    /// Cancel the task, and submit the new one when it has ended
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

/// An engine that reads the store that is there.
pub(super) async fn open_to_read(options: &GlobalOptions) -> anyhow::Result<Engine> {
    on(store_file::open_to_read(options).await?).await
}

/// An engine on the store that is there.
pub(super) async fn open(options: &GlobalOptions) -> anyhow::Result<Engine> {
    on(store_file::open_existing(options).await?).await
}

/// An engine on a store; it runs nothing.
pub(super) async fn on(store: Arc<dyn Store>) -> anyhow::Result<Engine> {
    Ok(Engine::builder().store(store).open().await?)
}
