//! Handlers whose tasks end as the test file states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onward_store::TaskId;

use super::file::{Case, Outcome, UNDO};
use super::rewrite::KIND;
use crate::engine::Engine;
use crate::handlers::{Context, Failure};
use crate::workflow::template::{StepAction, Template};

/// The state that the handlers of a case share.
#[derive(Debug, Default)]
pub(super) struct CaseState(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The attempts of each task that have ended.
    attempts: BTreeMap<TaskId, u32>,
    /// The tasks that have begun and have not ended by the clock.
    begun: BTreeSet<TaskId>,
    /// The steps that ran without a result in the file.
    missing: BTreeSet<String>,
}

impl CaseState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the steps that ran without a result in the file.
    pub(super) fn missing(&self) -> Vec<String> {
        self.state().missing.iter().cloned().collect()
    }

    /// Returns the end of an attempt.
    fn attempt(&self, name: &str, outcome: Option<&Outcome>, task: TaskId) -> Result<String, Failure> {
        let mut state = self.state();
        let Some(mut outcome) = outcome else {
            state.missing.insert(name.to_owned());
            return Err(Failure::permanent("the test file has no result for it"));
        };
        let mut ended = state.attempts.get(&task).copied().unwrap_or(0);
        while let (Some(times), Some(then)) = (outcome.times.filter(|times| ended >= *times), &outcome.then) {
            (ended, outcome) = (ended - times, then);
        }
        if let Some(takes) = outcome.takes.filter(|_| state.begun.insert(task)) {
            // A handler cannot wait for a clock that stands still, so the task is tried again when
            // its time is over.
            return Err(Failure::not_counted("it takes its time", takes.max(Duration::from_millis(1))));
        }
        state.begun.remove(&task);
        *state.attempts.entry(task).or_default() += 1;
        match (&outcome.result, &outcome.fail, &outcome.dead) {
            (Some(result), ..) => Ok(result.to_string()),
            (_, Some(message), _) if outcome.times.is_some() => Err(Failure::retryable(message.as_str())),
            (_, Some(message), _) => Err(Failure::permanent(message.as_str())),
            (.., Some(message)) => Err(Failure::retryable(message.as_str())),
            (None, None, None) => Ok("null".to_owned()),
        }
    }
}

/// Registers the handlers of a case.
pub(super) fn register(engine: &Engine, template: &Template, case: &Case) -> Arc<CaseState> {
    let played = Arc::new(CaseState::default());
    for step in &template.steps {
        let StepAction::Work(work) = &step.action else { continue };
        let undo = work.undo.as_ref().map(|_| format!("{UNDO}{}", step.name));
        for name in std::iter::once(step.name.clone()).chain(undo) {
            let (outcome, played) = (case.steps.get(&name).cloned(), Arc::clone(&played));
            engine.handle(format!("{KIND}{name}"), move |context: Context| {
                let ended = played.attempt(&name, outcome.as_ref(), context.id());
                async move { ended }
            });
        }
    }
    played
}
