//! The history of a run for readers: the audit trail of its changes.

use onward_store::{StoreReads, TaskId, Timestamp};
use serde::Serialize;

use super::follow::RunFollower;
use crate::bounds;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::workflow::run::{RunEvent, TakenAction, decode};
use crate::workflow::template::Template;

/// An event in the history of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunHistoryEntry {
    /// The place in the history, from 0.
    pub number: u64,
    /// The time of the arrival that caused it.
    pub at: Timestamp,
    /// The event, such as `step_ended`.
    pub event: &'static str,
    /// The step that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The new state, the error, or another detail of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The author of an action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The reason that the author gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A reader of the history of a run.
#[derive(Debug)]
pub struct RunHistory {
    follower: RunFollower,
    engine: Engine,
    run: TaskId,
    position: u64,
    at: Timestamp,
}

/// The history of runs.
impl Engine {
    /// Returns a reader of the history of a run.
    ///
    /// # Errors
    /// As [`run_view`](Self::run_view).
    pub async fn run_history(&self, run: TaskId) -> Result<RunHistory> {
        let follower = self.follow_run(run).await?;
        Ok(RunHistory { follower, engine: self.clone(), run, position: 0, at: Timestamp::MIN })
    }
}

impl RunHistory {
    /// Returns the next events in order, those of at most
    /// [`HISTORY_CHUNKS`](bounds::HISTORY_CHUNKS) turns; an empty list after the last.
    ///
    /// # Errors
    /// If the history could not be read.
    pub async fn next(&mut self) -> Result<Vec<RunHistoryEntry>> {
        let chunks = self.engine.store().instance_history(self.run, self.position, bounds::HISTORY_CHUNKS).await?;
        let mut entries = Vec::new();
        for chunk in &chunks {
            for (number, event) in (chunk.first..).zip(decode(&chunk.chunk).map_err(Error::invalid)?) {
                self.at = event.at().unwrap_or(self.at);
                entries.push(entry(number, self.at, event, self.follower.template()));
            }
            self.position = chunk.first + chunk.events;
        }
        Ok(entries)
    }
}

fn entry(number: u64, at: Timestamp, event: RunEvent, template: &Template) -> RunHistoryEntry {
    let step = event.step().and_then(|step| template.steps.get(step as usize)).map(|step| step.name.clone());
    let name = event.name();
    let plain = RunHistoryEntry { number, at, event: name, step, detail: None, actor: None, reason: None };
    match event {
        RunEvent::ActionTaken { action, actor, reason, .. } => {
            RunHistoryEntry { detail: Some(action_text(&action, template)), actor, reason, ..plain }
        }
        RunEvent::Refused { message, actor, .. } => RunHistoryEntry { detail: Some(message), actor, ..plain },
        other => RunHistoryEntry { detail: detail(other, template), ..plain },
    }
}

/// Returns the detail of an event: what its name and its step do not contain.
fn detail(event: RunEvent, template: &Template) -> Option<String> {
    match event {
        RunEvent::TaskEnded { task, state, error, .. } => {
            Some(with_error(&format!("task {task} {}", state.as_str()), error.as_deref()))
        }
        RunEvent::NotStarted { error, .. } => Some(error),
        RunEvent::SignalReceived { name, .. } | RunEvent::Published { name, .. } => Some(name),
        RunEvent::StepSubmitted { item, is_undo, .. } => {
            let item = item.map(|item| format!("item {item}"));
            let undo = is_undo.then(|| "undo".to_owned());
            let parts: Vec<String> = undo.into_iter().chain(item).collect();
            (!parts.is_empty()).then(|| parts.join(" of "))
        }
        RunEvent::StepEnded { state, error, reason, .. } => {
            let why = error.or_else(|| reason.map(|reason| reason.text(template)));
            Some(with_error(state.as_str(), why.as_deref()))
        }
        RunEvent::StepWaits { until, title, .. } => {
            let until = until.map(|until| format!("until {}", Timestamp::from_microseconds(until)));
            let parts: Vec<String> = title.into_iter().chain(until).collect();
            (!parts.is_empty()).then(|| parts.join(", "))
        }
        RunEvent::UndoOfRun { run, .. } | RunEvent::ForkOfRun { run, .. } => Some(format!("run {run}")),
        RunEvent::BatchBegan { count, .. } => Some(format!("{count} items")),
        RunEvent::PhaseChanged { phase, error, .. } => Some(with_error(phase.as_str(), error.as_deref())),
        RunEvent::UndoBegan { steps } => Some(names(&steps, template)),
        RunEvent::UndoEnded { error, .. } => Some(error.unwrap_or_else(|| "completed".to_owned())),
        RunEvent::PublicationsLeftOut { count } => Some(format!("{count} events")),
        _ => None,
    }
}

fn action_text(action: &TakenAction, template: &Template) -> String {
    let of = |verb: &str, step: u32| format!("{verb} {}", names(&[step], template));
    match action {
        TakenAction::Retry { steps } => format!("retry {}", names(steps, template)).trim_end().to_owned(),
        TakenAction::Reset { step } => of("reset", *step),
        TakenAction::Resolve { step } => of("resolve", *step),
        TakenAction::Complete { step } => of("complete", *step),
        TakenAction::Skip { step } => of("skip", *step),
        TakenAction::Cancel { undo: false } => "cancel".to_owned(),
        TakenAction::Cancel { undo: true } => "cancel and undo".to_owned(),
        TakenAction::Undo => "undo".to_owned(),
    }
}

fn names(steps: &[u32], template: &Template) -> String {
    let names = steps.iter().filter_map(|step| template.steps.get(*step as usize)).map(|step| step.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

fn with_error(text: &str, error: Option<&str>) -> String {
    error.map_or_else(|| text.to_owned(), |error| format!("{text}: {error}"))
}
