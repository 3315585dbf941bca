//! The state of a run.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use onward_store::{TaskId, Timestamp};

use super::batch::Batch;
use super::json::Json;
use super::pages::Pages;
use super::phase::Phase;
use super::reason::Reason;
use super::references::References;
use super::step_state::StepState;
use super::undo_state::{UndoRecord, UndoState};
use crate::workflow::run::context::RunContext;
use crate::workflow::template::Template;

/// The state of a run: the fold of its events. A clone shares what does not change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunState {
    pub(in crate::workflow::run) phase: Phase,
    /// The time of the last arrival.
    pub(in crate::workflow::run) at: Timestamp,
    /// The time from which the run's `timeout` counts.
    pub(in crate::workflow::run) running_since: Option<Timestamp>,
    pub(in crate::workflow::run) steps: Pages<StepRecord, 16>,
    pub(in crate::workflow::run) open: References,
    pub(in crate::workflow::run) last_reference: u64,
    /// The number of pending steps.
    pub(in crate::workflow::run) pending: usize,
    /// The number of open and waiting steps.
    pub(in crate::workflow::run) active: usize,
    /// The moments for which steps wait.
    pub(in crate::workflow::run) moments: Arc<BTreeSet<(Timestamp, usize)>>,
    pub(in crate::workflow::run) signals: Arc<VecDeque<(Arc<str>, Json)>>,
    /// The number of refused signals and actions that the history records.
    pub(in crate::workflow::run) refusals: u32,
    /// The bytes of results that are kept.
    pub(in crate::workflow::run) kept: usize,
    pub(in crate::workflow::run) is_cancelled: bool,
    /// True if an action asked for the undo.
    pub(in crate::workflow::run) wants_undo: bool,
    pub(in crate::workflow::run) has_undo_begun: bool,
    /// True if the run is a copy of another one, which it undoes.
    pub(in crate::workflow::run) is_undo_run: bool,
    /// The failure of the run itself.
    pub(in crate::workflow::run) error: Option<Arc<str>>,
    pub(in crate::workflow::run) result: Option<Json>,
}

/// The state of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::workflow::run) struct StepRecord {
    pub(in crate::workflow::run) state: StepState,
    /// The number of dependencies that have not ended.
    pub(in crate::workflow::run) waits: usize,
    pub(in crate::workflow::run) task: Option<TaskId>,
    pub(in crate::workflow::run) result: StepResult,
    pub(in crate::workflow::run) chosen: Option<Arc<[usize]>>,
    pub(in crate::workflow::run) error: Option<Arc<str>>,
    pub(in crate::workflow::run) reason: Option<Reason>,
    pub(in crate::workflow::run) attempts: u32,
    /// True if an attempt of an earlier epoch, or one of this, may have had an effect.
    pub(in crate::workflow::run) may_have_happened: bool,
    pub(in crate::workflow::run) started: Option<Timestamp>,
    pub(in crate::workflow::run) ended: Option<Timestamp>,
    pub(in crate::workflow::run) until: Option<Timestamp>,
    pub(in crate::workflow::run) is_delayed: bool,
    pub(in crate::workflow::run) title: Option<Arc<str>>,
    pub(in crate::workflow::run) batch: Option<Arc<Batch>>,
    pub(in crate::workflow::run) undo: Option<Arc<UndoRecord>>,
}

/// The result of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::workflow::run) enum StepResult {
    #[default]
    None,
    Kept(Json),
    /// To be read with the step's task.
    Omitted,
}

impl RunState {
    /// Creates the state of a run that has not begun.
    pub(crate) fn new(template: &Template) -> Self {
        let count = template.steps.len();
        let mut steps = Pages::<StepRecord, 16>::new(count);
        for (number, step) in template.steps.iter().enumerate().filter(|(_, step)| !step.depends_on.is_empty()) {
            if let Some(record) = steps.get_mut(number) {
                record.waits = step.depends_on.len();
            }
        }
        Self {
            phase: Phase::Waiting,
            at: Timestamp::MIN,
            running_since: None,
            steps,
            open: References::default(),
            last_reference: 0,
            pending: count,
            active: 0,
            moments: Arc::default(),
            signals: Arc::default(),
            refusals: 0,
            kept: 0,
            is_cancelled: false,
            wants_undo: false,
            has_undo_begun: false,
            is_undo_run: false,
            error: None,
            result: None,
        }
    }

    /// Returns the phase.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the failure of the run itself, or after its end the reason for it.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns the moment for which the run waits next, of a step or of its own limits.
    pub(crate) fn next_moment(&self, context: &RunContext) -> Option<Timestamp> {
        let first = self.moments.first().map(|(moment, _)| *moment);
        first.into_iter().chain(self.times_out_at(context).map(|(moment, _)| moment)).min()
    }

    /// Returns the moment at which the run takes too long, and the error then.
    pub(in crate::workflow::run) fn times_out_at(&self, context: &RunContext) -> Option<(Timestamp, &'static str)> {
        let since = self.running_since.filter(|_| self.phase == Phase::Running)?;
        let (own, above) = (context.template.timeout, context.limits);
        let own = own.map(|timeout| (since.plus(timeout), "the run took longer than its `timeout`"));
        let timeout = above.timeout.map(Duration::from_micros);
        let timeout =
            timeout.map(|timeout| (since.plus(timeout), "the run took longer than the `timeout` of its step"));
        let deadline = above.deadline.map(Timestamp::from_microseconds);
        let deadline = deadline.map(|deadline| (deadline, "the run did not end by the `deadline` of its step"));
        [own, timeout, deadline].into_iter().flatten().min()
    }

    /// Returns the state of a step; pending for one that does not exist.
    pub(in crate::workflow::run) fn step_state(&self, step: usize) -> StepState {
        self.steps.get(step).map(|record| record.state).unwrap_or_default()
    }

    /// Returns the undo of a step.
    pub(in crate::workflow::run) fn undo_of(&self, step: usize) -> UndoState {
        self.steps.get(step).and_then(|record| record.undo.as_ref()).map(|undo| undo.state).unwrap_or_default()
    }
}
