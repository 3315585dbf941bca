//! The state that all slots of one run share.

use std::sync::Arc;

use onward_store::{Claim, KindSelection, Name, NewTask, QueueChoice, QueueSelection, ServedCode, SessionId, When};

use super::app_state::AppState;
use super::inner::Inner;
use super::registrations::HandlerTable;
use crate::bounds;
use crate::dispatch::{Outbox, RunState};
use crate::observe::Hooks;
use crate::orchestration::{CodeTable, InstanceCache};
use crate::workflow::RUN_KIND_PREFIX;

/// One run of an engine: its handlers and state as they were when it began, and the tasks that it
/// holds.
pub(crate) struct Run {
    pub(crate) inner: Arc<Inner>,
    pub(crate) handlers: HandlerTable,
    pub(crate) app_state: AppState,
    pub(crate) state: RunState,
    pub(crate) hooks: Hooks,
    /// The code of the orchestrations.
    pub(crate) orchestrations: CodeTable,
    /// True if it runs workflows.
    pub(crate) runs_workflows: bool,
    /// The orchestrations in memory.
    pub(crate) instances: InstanceCache,
    /// Signals and starts that are written with the next commit.
    pub(crate) outbox: Outbox,
}

impl Run {
    /// Returns a claim for the handlers of this run. The caller sets its session and limit. It
    /// never claims orchestrations, whatever its kinds are: an orchestration without code here is
    /// left to other engines.
    pub(crate) fn claim(&self) -> Claim {
        let queues = self.inner.settings.queues.as_ref();
        Claim {
            session: SessionId(0),
            queues: queues.map_or(QueueSelection::All, |queues| {
                QueueSelection::Only(queues.iter().map(|queue| (queue.clone(), 0)).collect())
            }),
            kinds: self.inner.skipped_kinds.remove_from(self.handlers.kinds()),
            orchestrations: false,
            limit: 0,
            choice: QueueChoice { mode: self.inner.settings.queue_mode, ..QueueChoice::default() },
            least: None,
        }
    }
}

impl Run {
    /// Returns true if it runs turns: of orchestrations, or of runs of workflows.
    pub(crate) fn has_turns(&self) -> bool {
        self.runs_workflows || !self.orchestrations.is_empty()
    }

    /// Returns a claim for the orchestrations whose code this run has, and for runs of workflows.
    pub(crate) fn claim_of_turns(&self) -> Claim {
        let kinds = if self.runs_workflows {
            KindSelection::matching(self.orchestrations.names(), vec![RUN_KIND_PREFIX.to_owned()])
        } else {
            self.orchestrations.kinds()
        };
        Claim { kinds, orchestrations: true, ..self.claim() }
    }

    /// Returns true if this run claims a new orchestration or run of a workflow right after its
    /// submission, unless the store holds it back. A claim in the same call then saves a commit.
    pub(crate) fn starts_at_once(&self, new: &NewTask) -> bool {
        let kind = &new.kind;
        let has_code = self.orchestrations.has(kind) || self.runs_workflows && kind.starts_with(RUN_KIND_PREFIX);
        let queues = self.inner.settings.queues.as_ref();
        has_code
            && queues.is_none_or(|queues| queues.contains(&new.queue))
            && new.when == When::Now
            && new.depends_on.tasks.is_empty()
            && new.payload.len() <= bounds::QUEUED_PAYLOAD_BYTES
    }

    /// Returns the code that it has, for reports about why an orchestration or a run waits.
    pub(crate) fn served_code(&self) -> Vec<ServedCode> {
        let mut served = self.orchestrations.served();
        if self.runs_workflows
            && let Ok(kind) = Name::new(format!("{RUN_KIND_PREFIX}*"))
        {
            served.push(ServedCode { kind, since: 0, version: u32::MAX });
        }
        served
    }

    /// Returns the claims for everything that this run serves.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        if self.has_turns() { vec![self.claim(), self.claim_of_turns()] } else { vec![self.claim()] }
    }
}
