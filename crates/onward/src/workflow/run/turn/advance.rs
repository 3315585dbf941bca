//! A turn: it processes an arrival, decides, and applies the decisions to the state.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use onward_store::{TaskId, Timestamp};

use crate::workflow::expression::Budget;
use crate::workflow::run::bounds::ERROR_BYTES;
use crate::workflow::run::context::RunContext;
use crate::workflow::run::decision::{Advanced, Arrival, Decision, Effects, Results, Room, RunNext};
use crate::workflow::run::state::RunState;
use crate::workflow::run::state::event::RunEvent;
use crate::workflow::run::state::json::Json;
use crate::workflow::run::state::phase::Phase;
use crate::workflow::run::state::reason::Reason;
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::template::Step;

/// Decides what follows from an arrival.
///
/// The state is the one before the arrival, and `room` what the turn has left for it. The caller
/// writes the decision, then folds its events into the state.
pub(crate) fn advance(
    context: &RunContext,
    state: &RunState,
    now: Timestamp,
    arrival: Arrival,
    (results, room): (&dyn Results, Room),
) -> Advanced {
    let mut turn = Turn::new(context, state, now, (results, room));
    match turn.run(arrival) {
        Ok(()) => Advanced::Decided(turn.decision()),
        Err(NotRead) => Advanced::Needs(turn.needed.into_inner().into_iter().collect()),
    }
}

/// Some results have to be read first. The turn is given up and repeated then.
#[derive(Debug)]
pub(super) struct NotRead;

/// A turn under way.
pub(super) struct Turn<'a> {
    pub(super) context: &'a RunContext,
    pub(super) results: &'a dyn Results,
    pub(super) room: Room,
    /// The result that arrived in this turn.
    pub(super) arrived: Option<(TaskId, Json)>,
    pub(super) now: Timestamp,
    pub(super) state: RunState,
    pub(super) events: Vec<RunEvent>,
    pub(super) effects: Effects,
    /// The steps that ended since the last wave.
    pub(super) changed: Vec<usize>,
    /// True if the next wave decides about all pending steps.
    pub(super) judges_all: bool,
    /// The number of publications for which the turn has no room.
    pub(super) left_out: u32,
    pub(super) budget: RefCell<Budget>,
    pub(super) needed: RefCell<BTreeSet<TaskId>>,
}

/// The end of a step.
#[derive(Debug)]
pub(super) struct End {
    pub(super) state: StepState,
    pub(super) result: Option<Json>,
    pub(super) chosen: Option<Vec<u32>>,
    pub(super) error: Option<String>,
    pub(super) reason: Option<Reason>,
}

impl End {
    /// Creates an end without a result.
    pub(super) fn new(state: StepState) -> Self {
        Self { state, result: None, chosen: None, error: None, reason: None }
    }

    /// Creates the end of a step that did not run, or not to its own end.
    pub(super) fn because(state: StepState, reason: Reason) -> Self {
        Self { reason: Some(reason), ..Self::new(state) }
    }

    /// Creates a bad end.
    pub(super) fn bad(state: StepState, error: impl Into<String>) -> Self {
        Self { error: Some(cut(error.into())), ..Self::new(state) }
    }
}

/// Cuts an error to [`ERROR_BYTES`].
pub(super) fn cut(mut error: String) -> String {
    error.truncate(error.floor_char_boundary(ERROR_BYTES));
    error
}

/// Returns the number of a step as events have it.
pub(super) fn number(step: usize) -> u32 {
    // A template has at most 1000 steps.
    u32::try_from(step).unwrap_or(u32::MAX)
}

impl<'a> Turn<'a> {
    fn new(
        context: &'a RunContext,
        state: &RunState,
        now: Timestamp,
        (results, room): (&'a dyn Results, Room),
    ) -> Self {
        Self {
            context,
            results,
            room,
            arrived: None,
            now,
            state: state.clone(),
            events: Vec::new(),
            effects: Effects::default(),
            changed: Vec::new(),
            judges_all: false,
            left_out: 0,
            budget: RefCell::default(),
            needed: RefCell::default(),
        }
    }

    fn run(&mut self, arrival: Arrival) -> Result<(), NotRead> {
        if self.take(arrival)? {
            self.decide_pending_steps()?;
            self.end_if_idle()?;
        }
        if self.left_out > 0 {
            self.record(RunEvent::PublicationsLeftOut { count: self.left_out });
        }
        Ok(())
    }

    /// Processes an arrival. Returns false if it changes nothing.
    fn take(&mut self, arrival: Arrival) -> Result<bool, NotRead> {
        match arrival {
            Arrival::Start => Ok(self.begin_run()),
            Arrival::StepEnded { reference, task, state, result, error, attempts } => {
                self.process_end(reference, super::ends::Report { task, state, result, error, attempts })
            }
            Arrival::NotStarted { reference, existing } => self.process_not_started(reference, existing),
            Arrival::Signal { name, payload } => self.process_signal(name.as_str(), Json::new(payload)),
            Arrival::Cancel => self.process_cancel(),
            Arrival::Moment => self.process_moments(),
            Arrival::UndoOfRun { run } => self.begin_undo_of_run(run),
            Arrival::Fork { run, events } => Ok(self.begin_fork(run, events)),
            Arrival::Action(action) => self.carry_out_action(action),
        }
    }

    fn begin_run(&mut self) -> bool {
        if self.state.phase != Phase::Waiting {
            return false;
        }
        self.record(RunEvent::Started { at: self.at() });
        self.judges_all = true;
        true
    }

    /// Begins a run that takes over steps of another one.
    fn begin_fork(&mut self, run: Option<TaskId>, events: Vec<RunEvent>) -> bool {
        let begins = self.begin_run();
        if begins {
            run.iter().for_each(|run| self.record(RunEvent::ForkOfRun { at: self.at(), run: run.0 }));
            events.into_iter().for_each(|event| self.record(event));
        }
        begins
    }

    /// Returns the time of the turn as events have it.
    pub(super) fn at(&self) -> i64 {
        self.now.as_microseconds()
    }

    /// Appends an event, and applies it to the state.
    pub(super) fn record(&mut self, event: RunEvent) {
        self.state.fold(self.context, &event);
        self.events.push(event);
    }

    /// Returns a step of the template.
    pub(super) fn step(&self, step: usize) -> Option<&'a Step> {
        self.context.template.steps.get(step)
    }

    /// Ends a step.
    pub(super) fn end_step(&mut self, step: usize, end: End) -> Result<(), NotRead> {
        let End { state, result, chosen, error, reason } = end;
        self.record(RunEvent::StepEnded { step: number(step), state, result, chosen, error, reason });
        self.changed.push(step);
        self.publish(step)
    }

    fn decision(mut self) -> Decision {
        let graph = &self.context.template.graph;
        self.effects.submits.sort_by_key(|task| (Reverse(graph.longest_below(task.step)), task.step, task.item));
        let next = self.next();
        Decision { events: self.events, effects: self.effects, next }
    }

    fn next(&self) -> RunNext {
        let error = || self.state.error.as_deref().unwrap_or_default().to_owned();
        match self.state.phase {
            Phase::Completed => {
                RunNext::Complete { result: self.state.result.as_ref().map(|result| result.bytes().clone()) }
            }
            Phase::Failed => RunNext::Fail { error: error() },
            Phase::Dead => RunNext::Dead { error: error() },
            Phase::Cancelled => RunNext::Cancelled { reason: error() },
            Phase::Held => RunNext::Held,
            Phase::Waiting | Phase::Running | Phase::Stopping | Phase::Undoing => {
                // A turn that had no room for all tasks is followed by another one.
                let next = self.state.next_moment(self.context);
                RunNext::Wait { until: if self.is_full() { Some(self.now) } else { next } }
            }
        }
    }
}
