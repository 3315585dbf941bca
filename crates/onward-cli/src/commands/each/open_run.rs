//! The steps before the first command starts: identifying the run, opening its input, and checking
//! or forgetting what it has finished.

use onward_store::bounds::EACH_QUEUE_PREFIX;
use onward_store::{Name, Outcome, Page, Store, StoreReads, TaskFilter, TaskState, Write};
use tokio::sync::mpsc;

use super::arguments::Arguments;
use super::changed_command;
use super::identity::{Identity, program_of};
use crate::apply::{apply_one, unexpected};
use crate::commands::queue::purge;
use crate::exit_code::wrong_usage;
use crate::input::{self, Line, Source};
use crate::options::GlobalOptions;
use crate::output::{ProgressBar, Unit, counted};

/// The flag that names the input.
const INPUT: &str = "--input";

/// A run whose input is about to be processed.
#[derive(Debug)]
pub(super) struct OpenedRun {
    /// The identity of the run.
    pub(super) identity: Identity,
    /// The lines of the run, in batches.
    pub(super) batches: mpsc::Receiver<anyhow::Result<Vec<Line>>>,
    /// The number of lines, if it is already known.
    pub(super) total: Option<u64>,
}

/// Opens the input. For a run without a name, reads the input to its end here, because the identity
/// of the run depends on all of it.
pub(super) fn open(arguments: &Arguments) -> anyhow::Result<OpenedRun> {
    let (identity, lines, total) = match &arguments.name {
        Some(name) => {
            let identity = Identity::named(name, arguments)?;
            (identity, arguments.items(input::open(INPUT, arguments.input.as_deref())?), None)
        }
        None => {
            let source = Source::take(INPUT, arguments.input.as_deref())?;
            let (identity, total) = Identity::of_input(arguments, arguments.items(source.read()?))?;
            (identity, arguments.items(source.read()?), Some(total))
        }
    };
    Ok(OpenedRun { identity, batches: input::read_in_background(lines)?, total })
}

/// Continues a run if the store has lines of it. Rejects another `--keep` than that of the run, and
/// a named run whose lines belong to another command, unless the user allows that. Otherwise the
/// lines that the other command finished would count as finished by this one.
pub(super) async fn continue_run(
    store: &dyn Store,
    identity: &mut Identity,
    arguments: &Arguments,
) -> anyhow::Result<()> {
    let filter = TaskFilter { queue: Some(identity.queue().clone()), ..TaskFilter::default() };
    let Some(newest) = store.tasks(filter, Page { before: None, limit: 1 }).await?.tasks.pop() else { return Ok(()) };
    identity.continue_from(&newest, arguments.keep)?;
    let Some(command) = identity.changeable_command() else { return Ok(()) };
    let theirs = changed_command::command_of(store, identity.run(), &newest).await?;
    match theirs.filter(|theirs| theirs != command) {
        None => Ok(()),
        // The run may have no new line, whose tag would name the command from now on.
        Some(_) if arguments.changed_command => {
            changed_command::remember(store, identity.run(), newest.id, command).await
        }
        Some(theirs) => Err(wrong_usage(format!(
            "--name {run}: this run has another command (`{program}`), and its finished lines would not be repeated with this one; \
             give another --name, start it again with --again, or continue it with --changed-command",
            run = identity.run(),
            program = program_of(&theirs)
        ))),
    }
}

/// Forgets what a run has finished. Fails while one of its lines runs, in this or in another
/// process.
pub(super) async fn forget(options: &GlobalOptions, store: &dyn Store, identity: &Identity) -> anyhow::Result<()> {
    forget_queue(options, store, identity.queue(), "--again").await.map(drop)
}

/// Forgets all lines in the queue of a run, and the queue. Returns the number of lines, or `None`
/// if the queue does not exist. `flag` is the flag that the user typed.
pub(super) async fn forget_queue(
    options: &GlobalOptions,
    store: &dyn Store,
    queue: &Name,
    flag: &str,
) -> anyhow::Result<Option<u64>> {
    // A sweep releases the tasks that processes that are gone still hold.
    match apply_one(store, Write::Sweep).await? {
        Outcome::Swept(_) => {}
        other => return Err(unexpected(other)),
    }
    let queues = store.queues().await?;
    let Some(found) = queues.into_iter().find(|found| found.name == *queue) else { return Ok(None) };
    if found.running > 0 {
        anyhow::bail!(
            "{flag}: {} of the run `{}` still running; stop the other process, or wait for it to end",
            counted(found.running, "line"),
            queue.strip_prefix(EACH_QUEUE_PREFIX).unwrap_or(queue)
        );
    }
    let states: Vec<TaskState> = TaskState::ALL.into_iter().filter(|state| *state != TaskState::Running).collect();
    let bar = ProgressBar::new(options, Unit::Tasks, None);
    let lines = purge(store, queue, &states, &bar).await?;
    bar.clear();
    apply_one(store, Write::DeleteQueue { queue: queue.clone() }).await?;
    changed_command::forget(store, queue.strip_prefix(EACH_QUEUE_PREFIX).unwrap_or(queue)).await?;
    Ok(Some(lines))
}
