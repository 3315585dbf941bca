//! The state of a run for readers.

use bytes::Bytes;
use onward_store::{TaskId, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use crate::workflow::run::{self, Phase, RunContext, RunState, StepState, UndoState};
use crate::workflow::template::{Dependency, Signal, StepAction};

/// A run and its steps, as its history has them.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunView {
    /// The task of the run.
    pub id: TaskId,
    /// The name of the template.
    pub workflow: String,
    /// The phase.
    pub phase: Phase,
    /// True if the run is paused: messages take effect when it is resumed.
    pub is_paused: bool,
    /// The failure of the run itself, or after a bad end the reason for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The steps, each after those that it depends on.
    pub steps: Vec<StepView>,
}

/// A step of a run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StepView {
    /// The name.
    pub name: String,
    /// The names of the steps that it depends on.
    pub depends_on: Vec<String>,
    /// The state.
    pub state: StepState,
    /// The error of a bad end, or the reason why the step did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The question that the step asks people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The signal for which the step waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The people and roles who may reply; none for everyone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<String>,
    /// The JSON Schema of the replies to the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_schema: Option<Value>,
    /// The task of a step that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The attempts that began.
    pub attempts: u32,
    /// The counts of a step with `each`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemCounts>,
    /// The state of the undo: `needed`, `open`, `completed` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<&'static str>,
    /// The error of an undo that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo_error: Option<String>,
    /// The time at which the step was submitted, or began to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The time of its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The moment for which the step waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The items of a step with `each`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ItemCounts {
    /// All items.
    pub all: u32,
    /// The items that are open.
    pub open: u32,
    /// The items that completed.
    pub completed: u32,
    /// The items that ended badly.
    pub bad: u32,
}

impl RunView {
    /// Returns true if the run has ended.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.phase.is_ended()
    }

    /// Returns a step.
    #[must_use]
    pub fn step(&self, name: &str) -> Option<&StepView> {
        self.steps.iter().find(|step| step.name == name)
    }
}

/// Returns the view of a run.
pub(crate) fn run_view(context: &RunContext, state: &RunState, id: TaskId, is_paused: bool) -> RunView {
    let mut steps: Vec<StepView> = state.steps(context).map(|step| step_view(context, &step)).collect();
    let template = &context.template;
    let mut places = vec![0; steps.len()];
    template.graph.order().iter().enumerate().for_each(|(place, step)| places[*step] = place);
    steps.sort_by_cached_key(|step| template.number(&step.name).map(|number| places[number]));
    let (workflow, error) = (template.name.clone(), state.error().map(str::to_owned));
    RunView { id, workflow, phase: state.phase(), is_paused, error, steps }
}

fn step_view(context: &RunContext, step: &run::StepView<'_>) -> StepView {
    let template = &context.template;
    let before = template.step(step.name).map_or(&[][..], |step| &step.depends_on);
    let name = |dependency: &Dependency| Some(template.steps.get(dependency.step)?.name.clone());
    let signal = awaited_signal(context, step);
    StepView {
        name: step.name.to_owned(),
        depends_on: before.iter().filter_map(name).collect(),
        state: step.state,
        reason: step.error.map(str::to_owned).or_else(|| step.reason.clone()),
        question: step.title.map(str::to_owned),
        signal: signal.map(|signal| signal.name.clone()),
        who: signal.and_then(|signal| signal.ask.as_ref()).map_or_else(Vec::new, |ask| ask.who.clone()),
        reply_schema: signal.and_then(|signal| signal.ask.as_ref()?.schema.clone()),
        task: step.task,
        attempts: step.attempts,
        items: step.items.map(|items| ItemCounts {
            all: items.count,
            open: items.open,
            completed: items.completed,
            bad: items.bad,
        }),
        undo: (step.undo != UndoState::None).then(|| step.undo.as_str()),
        undo_error: step.undo_error.map(str::to_owned),
        started_at: step.started,
        ended_at: step.ended,
        until: step.until,
    }
}

/// Returns the signal for which a step waits.
fn awaited_signal<'c>(context: &'c RunContext, step: &run::StepView<'_>) -> Option<&'c Signal> {
    match &context.template.step(step.name).filter(|_| step.state == StepState::Waiting)?.action {
        StepAction::Signal(signal) => Some(signal),
        _ => None,
    }
}

/// Returns the published status of a run: its phase and the counts of its steps. Lists show it
/// without reading the history.
pub(crate) fn run_status(context: &RunContext, state: &RunState) -> Bytes {
    let (mut open, mut ended, mut bad) = (0, 0, 0);
    for step in state.steps(context) {
        open += u32::from(step.state.is_active());
        ended += u32::from(step.state.is_ended());
        bad += u32::from(step.state.is_bad());
    }
    let steps = context.template.steps.len();
    json!({ "phase": state.phase(), "steps": steps, "open": open, "ended": ended, "bad": bad }).to_string().into()
}
