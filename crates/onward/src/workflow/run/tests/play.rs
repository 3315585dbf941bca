//! A run that is played: tasks end as the test says, and the clock moves as it says.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward_store::{Name, NewTask, TaskId, TaskState, Timestamp};
use serde_json::Value;

use super::super::decision::{NoResults, StepTask};
use super::super::*;
use crate::workflow::template::TemplateFile;

/// A run under way.
#[derive(Clone)]
pub(super) struct Play {
    pub(super) context: RunContext,
    pub(super) state: RunState,
    pub(super) now: Timestamp,
    pub(super) events: Vec<RunEvent>,
    /// The open submissions by their names: `a`, `a[0]`, `undo.a`, `undo.a[0]`.
    pub(super) open: BTreeMap<u64, (String, NewTask)>,
    /// The names of all submissions in their order.
    pub(super) submitted: Vec<String>,
    pub(super) withdrawn: Vec<String>,
    pub(super) cancelled: Vec<String>,
    pub(super) published: Vec<(String, Value)>,
    pub(super) next: RunNext,
    results: Read,
    next_task: i64,
    pub(super) needed: usize,
}

/// Results of tasks that were read.
#[derive(Clone, Default)]
struct Read(HashMap<TaskId, Bytes>);

impl Results for Read {
    fn result(&self, task: TaskId) -> Option<&[u8]> {
        self.0.get(&task).map(|bytes| &**bytes)
    }
}

/// Reads the template of a test, which has the name `test` unless it gives one.
pub(super) fn context(text: &str, input: &Value) -> RunContext {
    let file = TemplateFile::read("test.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    of_template(Arc::new(file.template().clone()), input)
}

pub(super) fn of_template(template: Arc<crate::workflow::template::Template>, input: &Value) -> RunContext {
    let schemas = Arc::new(Schemas::compile(&template).unwrap());
    let facts = RunFacts {
        id: 7,
        name: template.name.clone(),
        key: None,
        started_at: Timestamp::from_microseconds(0),
        environment: None,
    };
    RunContext::new(template, schemas, input.into(), facts)
}

impl Play {
    pub(super) fn of(context: RunContext) -> Self {
        Self {
            state: RunState::new(&context.template),
            context,
            now: Timestamp::from_microseconds(1_000_000),
            events: Vec::new(),
            open: BTreeMap::new(),
            submitted: Vec::new(),
            withdrawn: Vec::new(),
            cancelled: Vec::new(),
            published: Vec::new(),
            next: RunNext::Wait { until: None },
            results: Read::default(),
            next_task: 100,
            needed: 0,
        }
    }

    /// Starts a run.
    pub(super) fn start(text: &str) -> Self {
        Self::start_with(text, &Value::Null)
    }

    pub(super) fn start_with(text: &str, input: &Value) -> Self {
        let mut play = Self::of(context(text, input));
        play.arrive(Arrival::Start);
        play
    }

    /// Lets something arrive, and carries out what is decided.
    pub(super) fn arrive(&mut self, arrival: Arrival) {
        let decision = self.decide(&arrival);
        assert_eq!(decode(&encode(&decision.events)).as_ref(), Ok(&decision.events));
        for event in &decision.events {
            self.state.fold(&self.context, event);
        }
        self.events.extend(decision.events);
        for task in decision.effects.submits {
            let name = self.name(&task);
            self.submitted.push(name.clone());
            self.open.insert(task.reference, (name, task.task));
        }
        let name = |reference: &u64| self.open.get(reference).map(|(name, _)| name.clone());
        self.withdrawn.extend(decision.effects.withdraws.iter().filter_map(name));
        self.cancelled.extend(decision.effects.cancels.iter().filter_map(name));
        let json = |bytes: &Bytes| serde_json::from_slice(bytes).unwrap();
        self.published
            .extend(decision.effects.publishes.iter().map(|event| (event.name.clone(), json(&event.payload))));
        self.next = decision.next;
    }

    fn decide(&mut self, arrival: &Arrival) -> Decision {
        let room = Room::behind(&Effects::default());
        match advance(&self.context, &self.state, self.now, arrival.clone(), (&NoResults, room)) {
            Advanced::Decided(decision) => decision,
            Advanced::Needs(tasks) => {
                assert!(!tasks.is_empty());
                self.needed += 1;
                // The results of this test's store are read, and the same turn is decided again.
                let advanced = advance(&self.context, &self.state, self.now, arrival.clone(), (&self.results, room));
                let Advanced::Decided(decision) = advanced else { panic!("results were read and are needed") };
                decision
            }
        }
    }

    /// Makes the state from the history alone.
    pub(super) fn refold(&mut self) {
        let mut state = RunState::new(&self.context.template);
        self.events.iter().for_each(|event| state.fold(&self.context, event));
        self.state = state;
    }

    fn name(&self, task: &StepTask) -> String {
        let name = &self.context.template.steps[task.step].name;
        let undo = if task.undo { "undo." } else { "" };
        task.item.map_or_else(|| format!("{undo}{name}"), |item| format!("{undo}{name}[{item}]"))
    }

    /// Returns the task of an open submission.
    pub(super) fn task(&self, name: &str) -> &NewTask {
        self.open.values().find(|(open, _)| open == name).map(|(_, task)| task).unwrap()
    }

    /// Returns the payload of an open submission.
    pub(super) fn payload(&self, name: &str) -> Value {
        serde_json::from_slice(&self.task(name).payload).unwrap()
    }

    /// Returns the names of the open submissions.
    pub(super) fn open(&self) -> Vec<&str> {
        self.open.values().map(|(name, _)| name.as_str()).collect()
    }

    /// Ends an open submission.
    pub(super) fn report(&mut self, name: &str, state: TaskState, result: Option<Bytes>, error: Option<&str>) {
        let attempts = u32::from(!matches!(state, TaskState::Expired));
        self.report_attempts(name, state, result, error, attempts);
    }

    pub(super) fn report_attempts(
        &mut self,
        name: &str,
        state: TaskState,
        result: Option<Bytes>,
        error: Option<&str>,
        attempts: u32,
    ) {
        let found = self.open.iter().find(|(_, (open, _))| open == name).map(|(reference, _)| *reference);
        let reference = found.unwrap_or_else(|| panic!("{name} is not open: {:?}", self.open()));
        self.open.remove(&reference);
        self.next_task += 1;
        let task = TaskId(self.next_task);
        let result = result.map_or(ReportedResult::None, |bytes| {
            self.results.0.insert(task, bytes.clone());
            ReportedResult::Value(bytes)
        });
        let error = error.map(str::to_owned);
        self.arrive(Arrival::StepEnded { reference, task, state, result, error, attempts });
    }

    pub(super) fn complete(&mut self, name: &str, result: Value) {
        self.report(name, TaskState::Completed, Some(result.to_string().into()), None);
    }

    pub(super) fn fail(&mut self, name: &str) {
        self.report(name, TaskState::Failed, None, Some("no stock"));
    }

    pub(super) fn die(&mut self, name: &str) {
        self.report(name, TaskState::Dead, None, Some("lost"));
    }

    pub(super) fn signal(&mut self, name: &str, payload: Value) {
        self.arrive(Arrival::Signal { name: Name::new(name).unwrap(), payload: payload.to_string().into() });
    }

    pub(super) fn act(&mut self, kind: ActionKind) {
        self.arrive(Arrival::Action(Action { kind, actor: Some("ada".into()), reason: None }));
    }

    /// Moves the clock, and lets the moment arrive.
    pub(super) fn after(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        self.arrive(Arrival::Moment);
    }

    pub(super) fn phase(&self) -> &'static str {
        self.state.phase().as_str()
    }

    /// Returns the state of a step.
    pub(super) fn step(&self, name: &str) -> &'static str {
        self.view(name).state.as_str()
    }

    pub(super) fn view(&self, name: &str) -> StepView<'_> {
        self.state.steps(&self.context).find(|step| step.name == name).unwrap()
    }

    /// Returns the states of all steps, as `a=completed b=open`.
    pub(super) fn states(&self) -> String {
        let states = self.state.steps(&self.context).map(|step| format!("{}={}", step.name, step.state.as_str()));
        states.collect::<Vec<_>>().join(" ")
    }

    /// Returns the result of a completed run.
    pub(super) fn result(&self) -> Value {
        match &self.next {
            RunNext::Complete { result } => serde_json::from_slice(result.as_ref().unwrap()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the error of a run that did not complete.
    pub(super) fn error(&self) -> &str {
        match &self.next {
            RunNext::Fail { error } | RunNext::Dead { error } | RunNext::Cancelled { reason: error } => error,
            other => panic!("{other:?}"),
        }
    }

    /// Returns true if the run is dead because steps were left over.
    pub(super) fn error_of_bug(&self) -> bool {
        matches!(&self.next, RunNext::Dead { error } if error.contains("report this as a bug"))
    }

    /// Returns the message with which the last arrival was refused.
    pub(super) fn refusal(&self) -> Option<&str> {
        match self.events.last() {
            Some(RunEvent::Refused { message, .. }) => Some(message),
            _ => None,
        }
    }
}
