//! Checks whether an engine has anything left to run.

use onward_store::{
    Claim, KindSelection, Name, Page, QueueRecord, QueueSelection, Scope, Store, StoreReads, TaskFilter, TaskRecord,
    TaskState,
};

use crate::error::Result;

/// Returns true if every task that `claim` could ever return has ended.
///
/// The caller has just made a claim that returned nothing, so a waiting task is paused or held back
/// by a limit. A paused task counts if the pause has an end. A task behind a limit counts because
/// the limit gives way when other tasks end. A blocked task counts if anything runs or is scheduled
/// that it may be waiting for, or if it is collected into a batch, which becomes ready by time.
pub(crate) async fn is_drained(store: &dyn Store, claim: &Claim) -> Result<bool> {
    let queues = store.queues().await?;
    let live: Vec<&QueueRecord> =
        queues.iter().filter(|queue| is_selected(&claim.queues, &queue.name) && has_live_tasks(queue)).collect();
    if live.is_empty() {
        return Ok(true);
    }
    let pauses = store.pauses().await?;
    let has_limits = !store.limits().await?.is_empty();
    let mut states = vec![TaskState::Scheduled, TaskState::Running];
    if live.iter().any(|queue| queue.blocked > 0) && queues.iter().any(goes_on) {
        states.push(TaskState::Blocked);
    }
    let is_collected = |task: &TaskRecord| task.aggregate.is_some() && task.batch.is_none();
    for queue in live {
        let has_blocked = queue.blocked > 0;
        if has_blocked && has_task(store, &queue.name, claim, &[TaskState::Blocked], is_collected).await? {
            return Ok(false);
        }
        if has_task(store, &queue.name, claim, &states, |_| true).await? {
            return Ok(false);
        }
        let may_go_on =
            |task: &TaskRecord| !pauses.iter().any(|pause| pause.until.is_none() && holds(&pause.scope, task));
        let may_wait = has_limits || pauses.iter().any(|pause| pause.until.is_some());
        if may_wait && has_task(store, &queue.name, claim, &[TaskState::Waiting], may_go_on).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holds(scope: &Scope, task: &TaskRecord) -> bool {
    match scope {
        Scope::All => true,
        Scope::Queue(queue) => *queue == task.queue,
        Scope::Kind(kind) => *kind == task.kind,
        Scope::Group(group) => task.group.as_ref() == Some(group),
    }
}

fn is_selected(selection: &QueueSelection, queue: &Name) -> bool {
    match selection {
        QueueSelection::All => true,
        QueueSelection::Only(queues) => queues.iter().any(|(name, _)| name == queue),
    }
}

fn has_live_tasks(queue: &QueueRecord) -> bool {
    queue.blocked + queue.scheduled + queue.waiting + queue.running > 0
}

fn goes_on(queue: &QueueRecord) -> bool {
    queue.scheduled + queue.running > 0
}

/// Returns true if a queue has a task that a claim selects, in one of these states, for which
/// `counts` returns true.
async fn has_task(
    store: &dyn Store,
    queue: &Name,
    claim: &Claim,
    states: &[TaskState],
    counts: impl Fn(&TaskRecord) -> bool,
) -> Result<bool> {
    let of = |kind: Option<Name>| TaskFilter {
        kind,
        queue: Some(queue.clone()),
        states: states.to_vec(),
        orchestration: (!claim.orchestrations).then_some(false),
        ..TaskFilter::default()
    };
    let kinds = &claim.kinds;
    let filters: Vec<TaskFilter> = match kinds {
        KindSelection::All | KindSelection::Matching(_) => vec![of(None)],
        KindSelection::Only(kinds) => kinds.iter().map(|kind| of(Some(kind.clone()))).collect(),
    };
    for filter in filters {
        // The first page has one task, because that one mostly decides.
        let (mut before, mut limit) = (None, 1);
        loop {
            let page = store.tasks(filter.clone(), Page { before, limit }).await?;
            if page.tasks.iter().any(|task| kinds.selects(&task.kind) && counts(task)) {
                return Ok(true);
            }
            if page.next.is_none() {
                break;
            }
            (before, limit) = (page.next, onward_store::bounds::PAGE);
        }
    }
    Ok(false)
}
