//! Entries for fuzzers and benchmarks: turns and histories without a store.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use onward_store::{TaskId, TaskState, Timestamp};

use super::{
    Advanced, Arrival, Decision, Effects, ReportedResult, Results, Room, RunContext, RunEvent, RunFacts, RunState,
    Schemas, advance, decode, encode,
};
use crate::workflow::template::TemplateFile;

/// A run without a store: each task that it submits completes with the result `1`.
#[doc(hidden)]
#[derive(Debug)]
pub struct TurnsAlone(RunContext);

impl TurnsAlone {
    /// Creates a run of a template whose input is null.
    ///
    /// # Errors
    /// If a schema of the template is invalid.
    pub fn of(file: &TemplateFile) -> Result<Self, String> {
        let template = Arc::new(file.template().clone());
        let schemas = Arc::new(Schemas::compile(&template)?);
        let name = template.name.clone();
        let facts = RunFacts { id: 1, name, key: None, started_at: Timestamp::MIN, environment: None };
        Ok(Self(RunContext::new(template, schemas, (&serde_json::Value::Null).into(), facts)))
    }

    /// Creates a run of the template to which the histories of [`exercise_history`] belong.
    ///
    /// # Errors
    /// Never: the template is valid.
    pub fn exercised() -> Result<Self, String> {
        Self::of(&TemplateFile::read("fuzz.yaml", TEMPLATE).map_err(|errors| errors.to_string())?)
    }

    /// Decides and folds the turns of the run until nothing is open. Returns their number.
    ///
    /// # Errors
    /// If a turn needs a result that is not in the state.
    pub fn play(&self) -> Result<usize, String> {
        self.turns(|_| ())
    }

    /// Returns the history of the run as a store has it.
    ///
    /// # Errors
    /// As [`play`](Self::play).
    pub fn history(&self) -> Result<Vec<u8>, String> {
        let mut history = Vec::new();
        self.turns(|decision| history.extend(encode(&decision.events)))?;
        Ok(history)
    }

    fn turns(&self, mut decided: impl FnMut(&Decision)) -> Result<usize, String> {
        let (context, mut state) = (&self.0, RunState::new(&self.0.template));
        let mut arrivals = VecDeque::from([Arrival::Start]);
        let mut turns = 0;
        while let Some(arrival) = arrivals.pop_front() {
            let room = Room::behind(&Effects::default());
            let Advanced::Decided(decision) = advance(context, &state, time(), arrival, (&NothingRead, room)) else {
                return Err("a turn needs a result that is not in the state".to_owned());
            };
            decided(&decision);
            decision.events.iter().for_each(|event| state.fold(context, event));
            arrivals.extend(decision.effects.submits.iter().map(|task| completed(task.reference)));
            turns += 1;
        }
        Ok(turns)
    }
}

/// Returns the time of all turns.
fn time() -> Timestamp {
    Timestamp::from_microseconds(1_000_000)
}

/// Results of which none was read.
struct NothingRead;

impl Results for NothingRead {
    fn result(&self, _: TaskId) -> Option<&[u8]> {
        None
    }
}

fn completed(reference: u64) -> Arrival {
    Arrival::StepEnded {
        reference,
        task: TaskId(reference.cast_signed()),
        state: TaskState::Completed,
        result: ReportedResult::Value("1".into()),
        error: None,
        attempts: 1,
    }
}

/// The template to which the histories of fuzzers belong.
const TEMPLATE: &str = "
on_failure: undo
steps:
  a: {task: t, undo: {task: u}, publishes: [{name: e}]}
  b: {task: t, each: {from: 0, to: 5, by: 1}, undo: {task: u}, depends_on: [a]}
  ask: {signal: s, depends_on: [a]}
  choose: {task: t, chooses: [c], depends_on: [a], on_failure: continue}
  c: {value: '${{ steps.choose.result }}'}
  late: {wait: 1h, depends_on: [ask]}";

static CONTEXT: LazyLock<Option<RunContext>> = LazyLock::new(|| TurnsAlone::exercised().ok().map(|turns| turns.0));

/// Reads any bytes as the history of a run, folds it, and decides a turn behind it.
///
/// # Panics
/// If the events that were read change when they are written and read again.
#[doc(hidden)]
pub fn exercise_history(bytes: &[u8]) {
    let (Some(context), Ok(events)) = (&*CONTEXT, decode(bytes)) else { return };
    assert!(events.len() <= bytes.len());
    assert_eq!(decode(&encode(&events)).as_ref(), Ok(&events));
    let mut state = RunState::new(&context.template);
    if events.iter().all(|event| state.fold_read(context, event).is_ok()) {
        for arrival in [Arrival::Start, Arrival::Moment, completed(1), Arrival::Cancel] {
            decide_behind(context, &state, arrival);
        }
    }
}

/// Decides a turn behind a history, and folds it.
fn decide_behind(context: &RunContext, state: &RunState, arrival: Arrival) {
    let room = Room::behind(&Effects::default());
    if let Advanced::Decided(Decision { events, .. }) = advance(context, state, time(), arrival, (&NothingRead, room)) {
        let mut after = state.clone();
        events.iter().for_each(|event: &RunEvent| after.fold(context, event));
    }
}
