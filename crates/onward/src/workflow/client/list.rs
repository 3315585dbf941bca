//! Lists of runs, which read no history.

use onward_store::{
    Hold, InstanceRecord, Name, Page, StoreReads, TaskFilter, TaskId, TaskRecord, TaskState, Timestamp,
    bounds as store_bounds,
};
use serde::{Deserialize, Serialize};

use crate::bounds;
use crate::engine::Engine;
use crate::error::Result;
use crate::workflow::run::{Phase, RUN_KIND_PREFIX};
use crate::workflow::turn::run_kind;

/// A query for runs, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQuery {
    /// The name of the template. Default: any.
    pub workflow: Option<String>,
    /// The phase. Default: any.
    pub phase: Option<Phase>,
    /// The unique key. Default: any.
    pub key: Option<String>,
    /// The run before which the page starts: [`RunPage::next`] of the previous page.
    pub before: Option<TaskId>,
    /// The largest number of runs, clamped to 1 to 1000. Default: 50.
    pub limit: usize,
}

impl Default for RunQuery {
    fn default() -> Self {
        Self { workflow: None, phase: None, key: None, before: None, limit: 50 }
    }
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RunPage {
    /// The runs, the newest first.
    pub runs: Vec<RunSummary>,
    /// The value for [`RunQuery::before`] of the next page; `None` if this was the last page.
    pub next: Option<TaskId>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// The task of the run.
    pub id: TaskId,
    /// The name of the template.
    pub workflow: String,
    /// The unique key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The queue of the run.
    pub queue: Name,
    /// The phase.
    pub phase: Phase,
    /// True if the run is paused.
    pub is_paused: bool,
    /// The number of steps; 0 before the first turn, as the other counts.
    pub steps: u32,
    /// The steps that are open or wait.
    pub open: u32,
    /// The steps that have ended.
    pub ended: u32,
    /// The steps that ended badly.
    pub bad: u32,
    /// The signals for which steps wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<Name>,
    /// The run or orchestration of which this run is a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// The time of the start.
    pub started_at: Timestamp,
    /// The time of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// The published status of a run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
    steps: u32,
    open: u32,
    ended: u32,
    bad: u32,
}

/// Lists of runs.
impl Engine {
    /// Returns a page of runs. A search that finds few ends after
    /// [`RUN_SEARCH_PAGES`](bounds::RUN_SEARCH_PAGES) pages of the store; `next` continues it.
    ///
    /// # Errors
    /// If the store could not be read, or the name is none of a template.
    pub async fn runs(&self, query: RunQuery) -> Result<RunPage> {
        let kind = query.workflow.as_deref().map(run_kind).transpose()?;
        let filter = TaskFilter { kind, key: query.key, orchestration: Some(true), ..TaskFilter::default() };
        let limit = query.limit.clamp(1, store_bounds::PAGE);
        let mut page = RunPage { runs: Vec::new(), next: query.before };
        for _ in 0..bounds::RUN_SEARCH_PAGES {
            let found =
                self.store().tasks(filter.clone(), Page { before: page.next, limit: store_bounds::PAGE }).await?;
            for task in found.tasks.iter().filter(|task| task.kind.starts_with(RUN_KIND_PREFIX)) {
                let instance = self.store().instance(task.id).await?.unwrap_or_default();
                let run = summary(task, instance);
                if query.phase.is_some_and(|phase| phase != run.phase) {
                    continue;
                }
                if page.runs.len() == limit {
                    page.next = page.runs.last().map(|last| last.id);
                    return Ok(page);
                }
                page.runs.push(run);
            }
            page.next = found.next;
            if page.next.is_none() {
                break;
            }
        }
        Ok(page)
    }
}

fn summary(task: &TaskRecord, instance: InstanceRecord) -> RunSummary {
    let status = instance.status.as_deref().and_then(|status| serde_json::from_slice::<Status>(status).ok());
    let status = status.unwrap_or_default();
    RunSummary {
        id: task.id,
        workflow: task.kind.strip_prefix(RUN_KIND_PREFIX).unwrap_or(&task.kind).to_owned(),
        key: task.key.clone(),
        queue: task.queue.clone(),
        phase: shown_phase(status.phase.parse().unwrap_or_default(), task.state),
        is_paused: !task.state.is_ended() && matches!(instance.hold, Hold::Paused | Hold::PausedDue),
        steps: status.steps,
        open: status.open,
        ended: status.ended,
        bad: status.bad,
        awaits: if task.state.is_ended() { Vec::new() } else { instance.awaits },
        parent: task.parent,
        started_at: task.submitted_at,
        ended_at: task.finished_at,
    }
}

/// Returns the phase of a run. The phase that a run wrote last is that of the turn before, if its
/// task ended without a turn.
pub(super) fn shown_phase(phase: Phase, state: TaskState) -> Phase {
    match state {
        _ if phase.is_ended() || !state.is_ended() => phase,
        TaskState::Completed => Phase::Completed,
        TaskState::Cancelled => Phase::Cancelled,
        TaskState::Dead => Phase::Dead,
        _ => Phase::Failed,
    }
}
