//! The state of a run.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use onward_store::{TaskId, Timestamp};

use super::batch::Batch;
use super::json::Json;
use super::pages::Pages;
use super::phase::Phase;
use super::reason::Reason;
use super::references::References;
use super::step_state::StepState;
use super::undo_state::{UndoRecord, UndoState};
use crate::workflow::template::Template;

/// The state of a run: the fold of its events. A clone shares what does not change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunState {
    pub(super) phase: Phase,
    /// The time of the last arrival.
    pub(super) at: Timestamp,
    /// The time from which the run's `timeout` counts.
    pub(super) running_since: Option<Timestamp>,
    pub(super) steps: Pages<StepRecord, 16>,
    pub(super) open: References,
    pub(super) last_reference: u64,
    /// The number of pending steps.
    pub(super) pending: usize,
    /// The number of open and waiting steps.
    pub(super) active: usize,
    /// The moments for which steps wait.
    pub(super) moments: Arc<BTreeSet<(Timestamp, usize)>>,
    pub(super) signals: Arc<VecDeque<(Arc<str>, Json)>>,
    /// The bytes of results that are kept.
    pub(super) kept: usize,
    pub(super) is_cancelled: bool,
    /// True if an action asked for the undo.
    pub(super) wants_undo: bool,
    pub(super) has_undo_begun: bool,
    /// The failure of the run itself.
    pub(super) error: Option<Arc<str>>,
    pub(super) result: Option<Json>,
}

/// The state of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct StepRecord {
    pub(super) state: StepState,
    /// The number of dependencies that have not ended.
    pub(super) waits: usize,
    pub(super) task: Option<TaskId>,
    pub(super) result: StepResult,
    pub(super) chosen: Option<Arc<[usize]>>,
    pub(super) error: Option<Arc<str>>,
    pub(super) reason: Option<Reason>,
    pub(super) attempts: u32,
    /// True if an attempt of an earlier epoch, or one of this, may have had an effect.
    pub(super) may_have_happened: bool,
    pub(super) started: Option<Timestamp>,
    pub(super) ended: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
    pub(super) is_delayed: bool,
    pub(super) title: Option<Arc<str>>,
    pub(super) batch: Option<Arc<Batch>>,
    pub(super) undo: Option<Arc<UndoRecord>>,
}

/// The result of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum StepResult {
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
            kept: 0,
            is_cancelled: false,
            wants_undo: false,
            has_undo_begun: false,
            error: None,
            result: None,
        }
    }

    /// Returns the phase.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the moment for which the run waits next, of a step or of its `timeout`.
    pub(crate) fn next_moment(&self, template: &Template) -> Option<Timestamp> {
        let first = self.moments.first().map(|(moment, _)| *moment);
        first.into_iter().chain(self.times_out_at(template)).min()
    }

    /// Returns the moment at which the run takes too long.
    pub(super) fn times_out_at(&self, template: &Template) -> Option<Timestamp> {
        let since = self.running_since.filter(|_| self.phase == Phase::Running)?;
        template.timeout.map(|timeout| since.plus(timeout))
    }

    /// Returns the state of a step; pending for one that does not exist.
    pub(super) fn step_state(&self, step: usize) -> StepState {
        self.steps.get(step).map(|record| record.state).unwrap_or_default()
    }

    /// Returns the undo of a step.
    pub(super) fn undo_of(&self, step: usize) -> UndoState {
        self.steps.get(step).and_then(|record| record.undo.as_ref()).map(|undo| undo.state).unwrap_or_default()
    }
}
