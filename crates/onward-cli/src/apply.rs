//! Applying one write to any store, and waiting until a task has ended.

use std::time::Duration;

use onward_store::{Changes, Outcome, Refusal, Store, StoreReads, TaskId, TaskRecord, TaskState, WaitReason, Write};
use tokio::time::Instant;

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::remark;
use crate::report;

/// Applies one write and returns its outcome. A refusal becomes an error.
pub(crate) async fn apply_one(store: &dyn Store, write: Write) -> anyhow::Result<Outcome> {
    let outcomes = store.apply(vec![write]).await?;
    match outcomes.into_iter().next() {
        Some(Outcome::Refused(refusal)) => Err(refusal.into()),
        Some(outcome) => Ok(outcome),
        None => Err(unexpected("none")),
    }
}

/// Applies `action` to each thing that a command names, even after the store has refused an earlier
/// one. Each refusal is reported, and the command then ends with [`ExitCode::Failed`].
///
/// # Errors
/// Returns a refusal, if only one thing is named. Errors of the store or the output end the loop.
pub(crate) async fn for_each<T>(
    named: Vec<T>,
    options: &GlobalOptions,
    action: impl AsyncFn(T) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let is_single = named.len() == 1;
    let mut code = ExitCode::Done;
    for one in named {
        match action(one).await {
            Ok(()) => {}
            Err(error) if is_single || !is_refused(&error) => return Err(error),
            Err(error) => {
                report(&error, options.json);
                code = ExitCode::Failed;
            }
        }
    }
    Ok(code)
}

/// Returns true if the store refused one thing, not the command as a whole.
fn is_refused(error: &anyhow::Error) -> bool {
    !error.chain().any(|cause| cause.is::<onward_store::Error>() || cause.is::<std::io::Error>())
}

/// Returns the error for an outcome that the storage interface does not allow.
pub(crate) fn unexpected(outcome: impl std::fmt::Debug) -> anyhow::Error {
    anyhow::anyhow!("the store returned an unexpected outcome ({outcome:?}); report this as a fault of Onward")
}

/// Waits until a task has ended, in any process, and returns its record. Prints once the reasons
/// that need an action of the user: no worker serves the task, a pause, a slow rate.
///
/// Dropping the future stops only the waiting.
pub(crate) async fn wait_for_end(store: &dyn Store, task: TaskId) -> anyhow::Result<TaskRecord> {
    // Subscribed before the first read, so that a change right after it is not missed.
    let mut changes = store.changes();
    let mut stuck = StuckReport::new();
    loop {
        let record = store.task(task).await?.ok_or(Refusal::TaskNotFound(task))?;
        if record.state.is_ended() {
            return Ok(record);
        }
        tokio::select! {
            changed = next_change(store, &mut changes, &record) => changed?,
            () = stuck.due() => stuck.print(store, task).await?,
        }
    }
}

/// Waits until the store may have changed. Expires a waiting task whose time is over, because only
/// workers do so otherwise.
pub(crate) async fn next_change(store: &dyn Store, changes: &mut Changes, record: &TaskRecord) -> anyhow::Result<()> {
    tokio::select! {
        changed = changes.changed() => { changed.ok_or_else(onward_store::Error::closed)?; }
        () = until_expiry(store, record) => { store.apply(vec![Write::Sweep]).await?; }
    }
    Ok(())
}

/// The time that a worker has to start before a command that waits for a task reports that it is
/// stuck. A user may start the worker next.
const WORKER_GRACE: Duration = Duration::from_secs(2);

/// The interval at which the reasons are read until the task is stuck.
const WORKER_LOOK: Duration = Duration::from_secs(5);

/// The time until a rate allows another start, from which on it is reported.
const SLOW_RATE: Duration = Duration::from_secs(5);

/// A report, made once, that a task waits for something that does not come by itself.
#[derive(Debug)]
pub(crate) struct StuckReport {
    /// The time of the next look; `None` after the report.
    at: Option<Instant>,
}

impl StuckReport {
    /// Begins to count the time that a worker has to start.
    pub(crate) fn new() -> Self {
        Self { at: Some(Instant::now() + WORKER_GRACE) }
    }

    /// Waits until the next look is due. Never completes after the report.
    pub(crate) async fn due(&self) {
        match self.at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Prints the reasons why a task is stuck, if it is.
    pub(crate) async fn print(&mut self, store: &dyn Store, task: TaskId) -> anyhow::Result<()> {
        let reasons = self.look(store, Some(task)).await?;
        reasons.iter().for_each(|reason| remark(format_args!("task {task} waits: {reason}")));
        Ok(())
    }

    /// Returns the reasons why a task is stuck, once. Returns none if it is not stuck, and looks
    /// again later.
    pub(crate) async fn look(&mut self, store: &dyn Store, task: Option<TaskId>) -> anyhow::Result<Vec<WaitReason>> {
        let mut reasons = match task {
            Some(task) => store.why(task).await?.unwrap_or_default(),
            None => Vec::new(),
        };
        reasons.retain(needs_action);
        self.at = reasons.is_empty().then(|| Instant::now() + WORKER_LOOK);
        Ok(reasons)
    }
}

/// Returns true if a reason lasts until the user acts, or for so long that a user would take the
/// command for hung.
fn needs_action(reason: &WaitReason) -> bool {
    match reason {
        WaitReason::NoWorker | WaitReason::NotServed { .. } | WaitReason::NoCode { .. } | WaitReason::Paused { .. } => {
            true
        }
        WaitReason::Rate { next, .. } => *next >= SLOW_RATE,
        _ => false,
    }
}

/// Completes when a waiting task may have expired. Never completes if the task does not expire or
/// is running.
async fn until_expiry(store: &dyn Store, record: &TaskRecord) {
    match record.expires_at.filter(|_| record.state != TaskState::Running) {
        Some(at) => tokio::time::sleep((at - store.clock().now()).max(SOONEST_SWEEP)).await,
        None => std::future::pending().await,
    }
}

/// The shortest time between two sweeps by a process that waits for a task.
const SOONEST_SWEEP: Duration = Duration::from_secs(1);
