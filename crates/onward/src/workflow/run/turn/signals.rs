//! Signals, and the steps that wait for them.

use onward_store::text::Shown;

use super::{End, NotRead, Turn, cut, number};
use crate::workflow::expression::Value;
use crate::workflow::run::bounds::{REFUSALS_KEPT, SIGNALS_KEPT, SIGNALS_KEPT_BYTES};
use crate::workflow::run::context::RunContext;
use crate::workflow::run::schemas;
use crate::workflow::run::state::RunState;
use crate::workflow::run::state::event::RunEvent;
use crate::workflow::run::state::json::Json;
use crate::workflow::run::state::phase::Phase;
use crate::workflow::run::state::reason::Reason;
use crate::workflow::run::state::step_state::StepState;
use crate::workflow::template::{Signal, Step, StepAction};

/// Returns the name of the signal that a step waits for.
pub(in crate::workflow::run) fn signal_name(step: &Step) -> Option<&str> {
    match &step.action {
        StepAction::Signal(signal) => Some(&signal.name),
        _ => None,
    }
}

/// Returns the step that takes the next signal of a name.
///
/// # Errors
/// If no step takes it, or its payload does not fit the question. The sender gets the message.
pub(crate) fn check_signal(
    context: &RunContext,
    state: &RunState,
    name: &str,
    payload: &Value,
) -> Result<usize, String> {
    let template = &context.template;
    let is_taken = |step: &&usize| template.steps.get(**step).and_then(signal_name) == Some(name);
    let all: Vec<usize> = template.graph.order().iter().filter(is_taken).copied().collect();
    if all.is_empty() {
        return Err(no_step(context, name));
    }
    if state.phase.is_ended() || matches!(state.phase, Phase::Undoing | Phase::Held) {
        let phase = state.phase.as_str();
        return Err(format!("the run is {phase}, so no step waits for the signal `{}`", Shown(name)));
    }
    // Steps with one signal come one after the other, so the first that has not ended takes it.
    let Some(step) = all.into_iter().find(|step| !state.step_state(*step).is_ended()) else {
        return Err(format!("no step waits for the signal `{}` any more", Shown(name)));
    };
    let is_waiting = state.step_state(step) == StepState::Waiting;
    if !is_waiting {
        check_room(state)?;
    }
    check_answer(context, step, payload)?;
    Ok(step)
}

/// Refuses a signal that the run would have to keep beyond its bounds.
fn check_room(state: &RunState) -> Result<(), String> {
    if state.signals.len() >= SIGNALS_KEPT {
        return Err(format!("the run keeps {SIGNALS_KEPT} signals that no step has taken; send it again later"));
    }
    let bytes: usize = state.signals.iter().map(|(_, payload)| payload.bytes().len()).sum();
    if bytes >= SIGNALS_KEPT_BYTES {
        return Err(format!(
            "the signals that no step of the run has taken have {bytes} bytes, and the run keeps no more at \
             {SIGNALS_KEPT_BYTES}; send it again later, or send a reference to what is large"
        ));
    }
    Ok(())
}

/// Returns the people and roles who may send the next signal of a name; none for everyone.
pub(crate) fn repliers<'c>(context: &'c RunContext, state: &RunState, name: &str) -> &'c [String] {
    let template = &context.template;
    let steps = template.graph.order().iter().filter(|step| !state.step_state(**step).is_ended());
    let mut signals = steps.filter_map(|step| match &template.steps.get(*step)?.action {
        StepAction::Signal(signal) if signal.name == name => Some(signal),
        _ => None,
    });
    signals.next().and_then(|signal| signal.ask.as_ref()).map_or(&[], |ask| &ask.who)
}

fn check_answer(context: &RunContext, step: usize, payload: &Value) -> Result<(), String> {
    let schema = context.schemas.of(step).and_then(|schemas| schemas.ask.as_ref());
    schemas::check(schema, payload).map_err(|fault| format!("the answer does not fit the question: {fault}"))
}

fn no_step(context: &RunContext, name: &str) -> String {
    let mut names: Vec<&str> = context.template.steps.iter().filter_map(signal_name).collect();
    names.dedup();
    let there = match names.as_slice() {
        [] => "no step waits for any".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    format!("no step waits for the signal `{}`; {there}", Shown(name))
}

impl Turn<'_> {
    /// Gives a signal to the step that waits for it, or keeps it for a later one.
    pub(super) fn process_signal(&mut self, name: &str, payload: Json) -> Result<bool, NotRead> {
        let step = match check_signal(self.context, &self.state, name, payload.value()) {
            Ok(step) => step,
            Err(message) => {
                self.refuse(message, None);
                return Ok(true);
            }
        };
        self.record(RunEvent::SignalReceived { at: self.at(), name: name.to_owned(), payload: payload.clone() });
        let waits =
            self.state.steps.get(step).is_some_and(|record| record.state == StepState::Waiting && !record.is_delayed);
        if waits {
            self.answer(step, &payload)?;
        }
        Ok(true)
    }

    /// Records that a signal or an action was refused, up to [`REFUSALS_KEPT`] times: the senders
    /// of refused messages cannot fill the history.
    pub(super) fn refuse(&mut self, message: String, actor: Option<String>) {
        if self.state.refusals >= REFUSALS_KEPT {
            return;
        }
        self.record(RunEvent::Refused { at: self.at(), message: cut(message), actor });
    }

    /// Ends a step with the first signal that is kept for it.
    fn answer(&mut self, step: usize, payload: &Json) -> Result<(), NotRead> {
        self.record(RunEvent::SignalTaken { step: number(step) });
        let end = match self.check_result(step, payload.value()) {
            Ok(chosen) => End { chosen, ..End::new(StepState::Completed) },
            Err(fault) => End::bad(StepState::Dead, fault),
        };
        self.end_step(step, end)
    }

    /// Begins the wait for a signal. One that came earlier ends it at once.
    pub(super) fn begin_signal(&mut self, number: usize, step: &Step, signal: &Signal) -> Result<(), NotRead> {
        if let Some(payload) = self.kept_signal(number, &signal.name) {
            return self.answer(number, &payload);
        }
        let title = match signal.ask.as_ref().map(|ask| self.text("ask.title", &ask.title)).transpose() {
            Ok(title) => title,
            Err(trouble) => return self.fail(number, trouble),
        };
        self.wait(number, step.deadline.map(|deadline| self.now.plus(deadline)), false, title);
        Ok(())
    }

    /// Returns the first signal of a name that fits the question. Others before it are dropped.
    fn kept_signal(&mut self, step: usize, name: &str) -> Option<Json> {
        loop {
            let kept = self.state.signals.iter().find(|(signal, _)| &**signal == name);
            let payload = kept.map(|(_, payload)| payload.clone())?;
            match check_answer(self.context, step, payload.value()) {
                Ok(()) => return Some(payload),
                Err(message) => {
                    self.record(RunEvent::SignalTaken { step: number(step) });
                    self.refuse(message, None);
                }
            }
        }
    }

    /// Ends a wait for a signal whose deadline has come.
    pub(super) fn miss_signal(&mut self, step: usize, signal: &Signal) -> Result<(), NotRead> {
        match signal.otherwise.as_ref().map(|otherwise| self.value("otherwise", otherwise)).transpose() {
            Ok(Some(value)) => self.complete(step, Json::of(value)),
            Ok(None) => {
                let error = format!("no signal `{}` came before the deadline", signal.name);
                self.end_step(step, End { reason: Some(Reason::Deadline), ..End::bad(StepState::Failed, error) })
            }
            Err(trouble) => self.fail(step, trouble),
        }
    }
}
