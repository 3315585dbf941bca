//! Checks a store after a power cut.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use onward_store::{ManualClock, Name, Page, SqliteStore, Store, StoreReads, TaskFilter, TaskId, TaskState, Write};
use onward_testkit::task;

use super::facts::{Expected, Fact, Subject};
use super::workload::{claim, open_session};

/// More tasks than a workload has.
const ALL_TASKS: usize = 4096;

/// The acknowledged facts that do not hold after the power cut.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Tasks that are missing or in another state, and queues that are wrongly paused or not
    /// paused.
    pub(super) lost: Vec<Subject>,
    /// Tasks that are claimed although they have ended or their queue is paused, and numbers that
    /// are reused.
    pub(super) duplicated: Vec<TaskId>,
}

/// The content of a store.
struct Found {
    tasks: BTreeMap<TaskId, TaskState>,
    queues: BTreeMap<Name, bool>,
}

/// Opens the files as any program would, and compares the store with the expected facts.
///
/// # Errors
/// Returns an error if the store cannot be opened, or is not whole.
pub(super) async fn judge(path: &Path, clock: Arc<ManualClock>, expected: &Expected) -> Result<Verdict, String> {
    let store = SqliteStore::options().clock(clock).open(path).await.map_err(|error| error.to_string())?;
    let report = store.check().await.map_err(|error| error.to_string())?;
    if !report.integrity.is_empty() || !report.consistency.is_empty() {
        return Err(format!("{:?} {:?}", report.integrity, report.consistency));
    }
    let found = Found { tasks: states(&store).await, queues: queues(&store).await };
    let lost = expected.broken(|subject, fact| found.holds(subject, fact));
    Ok(Verdict { lost, duplicated: duplicated(&store, expected).await })
}

impl Found {
    fn holds(&self, subject: &Subject, fact: Fact) -> bool {
        match (subject, fact) {
            (Subject::Task(task), Fact::Is(state)) => self.tasks.get(task) == Some(&state),
            (Subject::Task(task), _) => self.tasks.contains_key(task),
            // A queue that was never used is not paused.
            (Subject::Queue(queue), fact) => fact == Fact::Paused(self.queues.get(queue).is_some_and(|paused| *paused)),
        }
    }
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

async fn queues(store: &SqliteStore) -> BTreeMap<Name, bool> {
    let queues = store.queues().await.expect("the queues can be listed");
    queues.into_iter().map(|queue| (queue.name, queue.paused)).collect()
}

/// Continues the work, as the next process would.
async fn duplicated(store: &SqliteStore, expected: &Expected) -> Vec<TaskId> {
    let outcomes = store.apply(vec![Write::Submit(Box::new(task("next")))]).await.expect("the store can be written");
    let onward_store::Outcome::Submitted(next) = outcomes[0] else { panic!("a task is submitted, not {outcomes:?}") };
    let handed_out = claim(store, open_session(store).await, ALL_TASKS).await;
    let again = handed_out
        .iter()
        .filter(|claimed| expected.has_ended(claimed.lease.task) || expected.is_paused(&claimed.queue));
    let again = again.map(|claimed| claimed.lease.task);
    again.chain(expected.has_task(next.id()).then(|| next.id())).collect()
}
