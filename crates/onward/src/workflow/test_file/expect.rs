//! Comparing the end of a run with what a case expects.

use std::time::Duration;

use super::file::{Expectation, UNDONE};
use super::play::Ended;
use crate::workflow::client::StepView;

/// Returns each difference as a sentence.
pub(super) fn mismatches(expect: &Expectation, ended: &Ended) -> Vec<String> {
    let mut found: Vec<String> = ended.missing.iter().map(|step| missing(step)).collect();
    let phase = ended.view.phase.as_str();
    if let Some(state) = expect.state.as_deref().filter(|state| *state != phase) {
        let error = ended.view.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        found.push(format!("the run is {phase}, and {state} was expected{error}"));
    }
    found.extend(expect.steps.iter().filter_map(|(name, state)| step_mismatch(name, state, ended)));
    if let Some(result) = expect.result.as_ref().filter(|result| Some(*result) != ended.result.as_ref()) {
        let actual = ended.result.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
        found.push(format!("the result is {actual}, and {result} was expected"));
    }
    if let Some(events) = expect.events.as_ref().filter(|events| **events != ended.events) {
        found.push(format!("the events are {}, and {} were expected", list(&ended.events), list(events)));
    }
    if let Some((least, most)) = expect.took.filter(|(least, most)| ended.took < *least || ended.took > *most) {
        found.push(format!("the run took {:?}, and {} was expected", ended.took, range(least, most)));
    }
    found
}

fn missing(step: &str) -> String {
    format!("step `{step}` has no result in the test file; add under `steps`: {step}: {{result: null}}")
}

fn step_mismatch(name: &str, expected: &str, ended: &Ended) -> Option<String> {
    let step = ended.view.step(name)?;
    let actual = if expected == UNDONE && step.undo == Some("completed") { UNDONE } else { step.state.as_str() };
    let reason = step.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let undo = undo_text(step);
    (actual != expected).then(|| format!("step `{name}` is {actual}{undo}, and {expected} was expected{reason}"))
}

fn undo_text(step: &StepView) -> String {
    step.undo.map(|undo| format!(" (undo {undo})")).unwrap_or_default()
}

fn list(names: &[String]) -> String {
    format!("[{}]", names.join(", "))
}

fn range(least: Duration, most: Duration) -> String {
    if least == most { format!("{least:?}") } else { format!("{least:?} to {most:?}") }
}
