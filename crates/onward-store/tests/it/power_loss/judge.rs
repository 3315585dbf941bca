//! What is left of a store after a power cut.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use onward_store::{ManualClock, Page, SqliteStore, Store, TaskFilter, TaskId, TaskState, Write};
use onward_testkit::task;

use super::workload::{Acknowledgement, What, claim, open_session};

/// More tasks than a workload has.
const ALL_TASKS: usize = 4096;

/// What somebody had been told before the power went, and does not hold after it.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Tasks that are not there, or not completed.
    pub(super) lost: BTreeSet<TaskId>,
    /// Completed tasks that are handed out again, and numbers that are given again.
    pub(super) duplicated: BTreeSet<TaskId>,
}

/// Opens what is left, as any program would, and holds it against what had been acknowledged.
///
/// # Errors
/// If it cannot be opened, or is not whole.
pub(super) async fn judge(
    path: &Path,
    clock: Arc<ManualClock>,
    acknowledged: &[&Acknowledgement],
) -> Result<Verdict, String> {
    let store = SqliteStore::options().clock(clock).open(path).await.map_err(|error| error.to_string())?;
    let report = store.check().await.map_err(|error| error.to_string())?;
    if !report.integrity.is_empty() || !report.consistency.is_empty() {
        return Err(format!("{:?} {:?}", report.integrity, report.consistency));
    }
    let found = states(&store).await;
    let lost = acknowledged.iter().flat_map(|acknowledgement| missing(acknowledgement, &found)).collect();
    Ok(Verdict { lost, duplicated: duplicated(&store, acknowledged).await })
}

async fn states(store: &SqliteStore) -> BTreeMap<TaskId, TaskState> {
    let mut states = BTreeMap::new();
    let mut page = Page { before: None, limit: 1000 };
    loop {
        let tasks = store.tasks(TaskFilter::default(), page).await.expect("the tasks can be listed");
        states.extend(tasks.tasks.iter().map(|task| (task.id, task.state)));
        let Some(next) = tasks.next else { return states };
        page.before = Some(next);
    }
}

fn missing(acknowledgement: &Acknowledgement, found: &BTreeMap<TaskId, TaskState>) -> Vec<TaskId> {
    let holds = |task: &TaskId| match acknowledgement.what {
        What::Submitted => found.contains_key(task),
        What::Completed => found.get(task) == Some(&TaskState::Completed),
    };
    acknowledgement.tasks.iter().copied().filter(|task| !holds(task)).collect()
}

/// Goes on with the work, as the next process would.
async fn duplicated(store: &SqliteStore, acknowledged: &[&Acknowledgement]) -> BTreeSet<TaskId> {
    let tasks_of = |what| {
        let acknowledged = acknowledged.iter().filter(move |acknowledgement| acknowledgement.what == what);
        acknowledged.flat_map(|acknowledgement| acknowledgement.tasks.iter().copied()).collect::<BTreeSet<TaskId>>()
    };
    let outcomes = store.apply(vec![Write::Submit(Box::new(task("next")))]).await.expect("the store can be written");
    let onward_store::Outcome::Submitted(next) = outcomes[0] else { panic!("a task is submitted, not {outcomes:?}") };
    let handed_out = claim(store, open_session(store).await, ALL_TASKS).await;
    let completed = tasks_of(What::Completed);
    let again = handed_out.iter().map(|claimed| claimed.lease.task).filter(|task| completed.contains(task));
    again.chain(tasks_of(What::Submitted).contains(&next.id()).then(|| next.id())).collect()
}
