//! Reads of a working set by the code of the model.

use std::collections::BTreeMap;

use crate::api::aggregate::{PendingBatch, PendingBatchSelection};
use crate::api::limit::LimitRecord;
use crate::api::name::Name;
use crate::api::queue::QueueMode;
use crate::api::reason::WaitReason;
use crate::api::schedule::{ScheduleRecord, ScheduleSelection};
use crate::api::store::{PauseRecord, QueueRecord, SessionRecord};
use crate::api::task::{TaskId, TaskRecord, TaskState};
use crate::api::write::Claim;
use crate::model::{Now, State};
use crate::postgres::working_set::applied::Covered;
use crate::postgres::working_set::contents::WorkingSet;

impl WorkingSet {
    /// Reads the state, or returns the requests that the read left open.
    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> Covered<T> {
        let value = look(&self.state);
        let requests = self.state.tasks.coverage.take_requests();
        if requests.is_empty() { Ok(value) } else { Err(requests) }
    }

    /// Returns the record of a task.
    pub(crate) fn record(&self, task: TaskId) -> Covered<Option<TaskRecord>> {
        self.look(|state| state.record(task))
    }

    /// Returns the records of tasks in the given order, without the fields that only a read of a
    /// single task returns.
    pub(crate) fn records(&self, tasks: &[TaskId], with_payload: bool) -> Covered<Vec<TaskRecord>> {
        let record = |state: &State, id: &TaskId| state.tasks.get(*id).map(|task| state.record_of(task, with_payload));
        self.look(|state| tasks.iter().filter_map(|id| record(state, id)).collect())
    }

    /// Returns the reasons why a task waits.
    pub(crate) fn why(&mut self, task: TaskId, now: Now) -> Covered<Option<Vec<WaitReason>>> {
        self.state.now = now;
        self.look(|state| state.why(task, now))
    }

    /// Returns the task that a claim would get next.
    pub(crate) fn peek(&mut self, claim: &Claim, now: Now) -> Covered<Option<TaskRecord>> {
        self.state.now = now;
        self.look(|state| state.peek(claim, now))
    }

    /// Returns the limits, with their current use.
    pub(crate) fn limits(&self, now: Now) -> Covered<Vec<LimitRecord>> {
        self.look(|state| state.limit_records(now.steady))
    }

    /// Returns the open sessions.
    pub(crate) fn sessions(&self) -> Covered<Vec<SessionRecord>> {
        self.look(State::session_records)
    }

    /// Returns the pauses in force.
    pub(crate) fn pauses(&self, now: Now) -> Vec<PauseRecord> {
        self.state.pause_records(now.wall)
    }

    /// Returns the pending batches.
    pub(crate) fn pending_batches(&self, which: &PendingBatchSelection) -> Vec<PendingBatch> {
        self.state.pending_batch_records(which)
    }

    /// Returns the order in which queues are served.
    pub(crate) fn mode(&self) -> QueueMode {
        self.state.mode
    }

    /// Returns the schedules.
    pub(crate) fn schedules(&self, which: &ScheduleSelection) -> Vec<ScheduleRecord> {
        self.state.schedules.select(which)
    }

    /// Returns the queues with empty counts, which the caller fills by a query.
    pub(crate) fn queues(&self, now: Now) -> BTreeMap<Name, QueueRecord> {
        self.state.queues.iter().map(|queue| (queue.clone(), self.state.empty_queue(queue, now.wall))).collect()
    }
}

/// Returns the state that a number in a row stands for.
pub(crate) fn state_of(code: i16) -> Option<TaskState> {
    TaskState::from_code(code.into())
}
