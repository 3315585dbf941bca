//! One run in memory, at the end of its history.

use std::sync::Arc;

use onward_store::{ClaimedTask, Store, StoreReads, TaskId, Timestamp};

use super::children::Children;
use super::payload::{RunPayload, RunSource};
use super::program::Program;
use super::templates::Templates;
use crate::bounds;
use crate::error::{Error, Result};
use crate::orchestration::Positioned;
use crate::workflow::expression::Value;
use crate::workflow::run::{RunContext, RunEvent, RunFacts, RunState, decode};

/// A run that was brought to the end of its history.
pub(crate) struct RunInstance {
    pub(super) context: RunContext,
    pub(super) state: RunState,
    /// The payload, which pins the templates of the runs below this one.
    pub(super) payload: RunPayload,
    /// The run that this one undoes.
    pub(super) undoes: Option<TaskId>,
    pub(super) children: Children,
    pub(super) generation: u32,
    /// The number of messages that it has received, if it is parked and has consumed all of them.
    pub(super) received: Option<u64>,
    /// The number of events in the history.
    pub(super) length: u64,
    /// The size of the history, in bytes.
    pub(super) bytes: u64,
}

impl Positioned for RunInstance {
    fn is_at(&self, generation: u32, length: u64) -> bool {
        self.generation == generation && self.length == length
    }
}

impl RunInstance {
    /// Returns the instance of a claimed run before its history was read.
    pub(super) fn new(task: &ClaimedTask, source: RunSource, program: &Program) -> Self {
        let (generation, length) = task.instance.as_ref().map_or((0, 0), |it| (it.generation, it.length));
        let context = run_context(&source, program);
        let state = RunState::new(&context.template);
        let children = Children::default();
        let RunSource { payload, undoes, .. } = source;
        Self { context, state, payload, undoes, children, generation, received: None, length, bytes: 0 }
    }

    /// Returns true if a moment of the run has come by a time.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.state.next_moment(&self.context).is_some_and(|moment| moment <= now)
    }

    /// Reads the history and folds its events.
    pub(super) async fn replay(&mut self, store: &dyn Store, task: TaskId) -> Result<()> {
        let (events, bytes) = read_history(store, task, self.length).await?;
        fold_all(&mut self.state, &self.context, &events)?;
        self.bytes += bytes;
        Ok(())
    }
}

/// Reads the first events of a history, and their size in bytes.
pub(super) async fn read_history(store: &dyn Store, run: TaskId, length: u64) -> Result<(Vec<RunEvent>, u64)> {
    let (mut events, mut position, mut bytes) = (Vec::new(), 0, 0);
    while position < length {
        let chunks = store.instance_history(run, position, bounds::HISTORY_CHUNKS).await?;
        if chunks.is_empty() {
            let text = format!("the history of run {run} ends at event {position}");
            return Err(onward_store::Error::corrupt(format!("{text} of {length}")).into());
        }
        for chunk in &chunks {
            events.extend(decode(&chunk.chunk).map_err(Error::invalid)?);
            position = chunk.first + chunk.events;
            bytes += chunk.chunk.len() as u64;
        }
    }
    Ok((events, bytes))
}

/// Takes the events of a history into a state.
///
/// # Errors
/// `is_invalid` if the history is damaged.
pub(super) fn fold_all(state: &mut RunState, context: &RunContext, events: &[RunEvent]) -> Result<()> {
    events.iter().try_for_each(|event| state.fold_read(context, event)).map_err(Error::invalid)
}

/// Reads a run as its history has it now.
///
/// # Errors
/// The store's error; `is_invalid` if the task is no run, or its template is not there.
pub(crate) async fn read_run(
    templates: &Templates,
    store: &dyn Store,
    run: TaskId,
) -> Result<(Box<RunContext>, RunState)> {
    let missing = |what: &str| Error::invalid(format!("run {run}, whose results are to be taken over, {what}"));
    let record = store.task(run).await?.ok_or_else(|| missing("was deleted; start the run anew"))?;
    let bytes = record.payload.as_deref().unwrap_or_default();
    let source = RunSource::read(store, run, record.submitted_at, bytes).await?;
    let payload = &source.payload;
    let program = templates.program(store, payload.template, payload.environment.as_deref()).await?;
    let program = program.ok_or_else(|| missing("has a template that is not in the store; put it again"))?;
    let context = Box::new(run_context(&source, &program));
    let mut state = RunState::new(&context.template);
    let length = store.instance(run).await?.map_or(0, |it| it.length);
    let (events, _) = read_history(store, run, length).await?;
    fold_all(&mut state, &context, &events)?;
    Ok((context, state))
}

/// Returns the constants of a run, which its expressions read.
pub(crate) fn run_context(source: &RunSource, program: &Program) -> RunContext {
    let payload = &source.payload;
    let facts = RunFacts {
        id: source.known_as.0,
        name: program.template.name.clone(),
        key: payload.key.clone(),
        started_at: source.submitted_at,
        environment: payload.environment.clone(),
    };
    // A run below another one gets the defaults of its schema here.
    let input = program.check_input(payload.input.clone()).unwrap_or_else(|_| payload.input.clone());
    let (template, schemas) = (Arc::clone(&program.template), Arc::clone(&program.schemas));
    let context = RunContext::new(template, schemas, Value::from(&input), facts);
    let only = payload.fork.as_ref().filter(|fork| fork.only).map(|fork| &fork.steps[..]);
    context.with(payload.limits, program.source.clone()).of_only(only.unwrap_or_default())
}
