//! Before the first command starts: which run it is, how long its input is, and what it has finished.

use onward_store::{Outcome, Page, Store, TaskFilter, TaskState, Write};
use tokio::sync::mpsc;

use super::arguments::Arguments;
use super::identity::Identity;
use crate::apply::{apply_one, unexpected};
use crate::commands::queue::purge;
use crate::exit_code::wrong_usage;
use crate::input::{self, Line, Lines, Source};
use crate::options::GlobalOptions;
use crate::output::{ProgressBar, Unit, counted};

/// A run whose input is about to be worked through.
#[derive(Debug)]
pub(super) struct Opening {
    /// Which run it is.
    pub(super) identity: Identity,
    /// Its lines.
    pub(super) batches: mpsc::Receiver<anyhow::Result<Vec<Line>>>,
    /// How many there are, where that is known already.
    pub(super) total: Option<u64>,
}

/// Opens the input. Without a name it is read to its end here, because what the run is depends on all of it.
pub(super) fn open(arguments: &Arguments) -> anyhow::Result<Opening> {
    let delimiter = arguments.delimiter();
    let (identity, lines, total) = match &arguments.name {
        Some(name) => {
            let identity = Identity::named(name, arguments)?;
            (identity, Lines::new(input::open(arguments.input.as_deref())?, delimiter), None)
        }
        None => {
            let source = Source::take(arguments.input.as_deref())?;
            let (identity, total) = Identity::of_input(arguments, source.lines(delimiter)?)?;
            (identity, source.lines(delimiter)?, Some(total))
        }
    };
    Ok(Opening { identity, batches: input::read_in_background(lines)?, total })
}

/// Refuses to go on with a named run whose lines are for another command: those that it has finished would count for this one.
pub(super) async fn check_command(store: &dyn Store, identity: &Identity) -> anyhow::Result<()> {
    let filter = TaskFilter { queue: Some(identity.queue().clone()), ..TaskFilter::default() };
    let newest = store.tasks(filter, Page { before: None, limit: 1 }).await?.tasks.pop();
    let Some(program) = newest.as_ref().and_then(|task| identity.other_command(task)) else { return Ok(()) };
    Err(wrong_usage(format!(
        "--name {run}: this run has another command (of `{program}`), and what it has finished would not be done with this one; \
         give another --name, start it anew with --again, or go on with --changed-command",
        run = identity.run()
    )))
}

/// Forgets what a run has finished. Refused while one of its lines runs, here or in another process.
pub(super) async fn forget(options: &GlobalOptions, store: &dyn Store, identity: &Identity) -> anyhow::Result<()> {
    // Takes back what processes that are gone still seem to hold.
    match apply_one(store, Write::Sweep).await? {
        Outcome::Swept(_) => {}
        other => return Err(unexpected(other)),
    }
    let queues = store.queues().await?;
    let Some(queue) = queues.into_iter().find(|queue| queue.name == *identity.queue()) else { return Ok(()) };
    if queue.running > 0 {
        anyhow::bail!(
            "--again: {} of the run `{}` still running; stop the other process, or wait for it to end",
            counted(queue.running, "line"),
            identity.run()
        );
    }
    let states: Vec<TaskState> = TaskState::ALL.into_iter().filter(|state| *state != TaskState::Running).collect();
    let bar = ProgressBar::new(options, Unit::Tasks, None);
    purge(store, identity.queue(), &states, &bar).await?;
    bar.clear();
    Ok(())
}
