//! Whether anything is left that an engine could still do.

use onward_store::{
    Claim, KindSelection, Name, Page, PauseRecord, QueueRecord, QueueSelection, Store, TaskFilter, TaskState,
};

use crate::error::Result;

/// Whether every task that `claim` could ever hand out has ended. Asked when a claim has just handed out nothing, so what waits
/// is paused, which counts only if the pause ends by itself, or in a queue of which others run as many tasks as may run. What is blocked
/// counts if something anywhere runs, or will, that it may be waiting for.
pub(crate) async fn is_drained(store: &dyn Store, claim: &Claim) -> Result<bool> {
    let queues = store.queues().await?;
    let live: Vec<&QueueRecord> =
        queues.iter().filter(|queue| is_selected(&claim.queues, &queue.name) && has_live_tasks(queue)).collect();
    if live.is_empty() {
        return Ok(true);
    }
    let mut states = vec![TaskState::Scheduled, TaskState::Running];
    if live.iter().any(|queue| queue.blocked > 0) && queues.iter().any(goes_on) {
        states.push(TaskState::Blocked);
    }
    if store.pauses().await?.iter().any(ends_by_itself) {
        states.push(TaskState::Waiting);
    }
    for queue in live {
        let waiting = [TaskState::Waiting].into_iter().filter(|_| is_full(queue));
        let states: Vec<TaskState> = states.iter().copied().chain(waiting).collect();
        if has_task(store, &queue.name, &claim.kinds, &states).await? {
            return Ok(false);
        }
    }
    Ok(true)
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

fn is_full(queue: &QueueRecord) -> bool {
    queue.concurrency.is_some_and(|limit| queue.running >= u64::from(limit))
}

fn ends_by_itself(pause: &PauseRecord) -> bool {
    pause.until.is_some()
}

async fn has_task(store: &dyn Store, queue: &Name, kinds: &KindSelection, states: &[TaskState]) -> Result<bool> {
    let of = |kind: Option<Name>| TaskFilter {
        kind,
        queue: Some(queue.clone()),
        states: states.to_vec(),
        ..TaskFilter::default()
    };
    let filters: Vec<TaskFilter> = match kinds {
        KindSelection::All => vec![of(None)],
        KindSelection::Only(kinds) => kinds.iter().map(|kind| of(Some(kind.clone()))).collect(),
    };
    for filter in filters {
        if !store.tasks(filter, Page { before: None, limit: 1 }).await?.tasks.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
