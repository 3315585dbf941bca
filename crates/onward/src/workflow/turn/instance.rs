//! One run in memory, at the end of its history.

use std::sync::Arc;

use onward_store::{ClaimedTask, Store, StoreReads, TaskId, Timestamp};

use super::children::Children;
use super::payload::RunPayload;
use super::program::Program;
use crate::bounds;
use crate::error::{Error, Result};
use crate::orchestration::Positioned;
use crate::workflow::expression::Value;
use crate::workflow::run::{RunContext, RunFacts, RunState, decode};

/// A run that was brought to the end of its history.
pub(crate) struct RunInstance {
    pub(super) context: RunContext,
    pub(super) state: RunState,
    /// The payload, which pins the templates of the runs below this one.
    pub(super) payload: RunPayload,
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
    pub(super) fn new(task: &ClaimedTask, payload: RunPayload, program: &Program) -> Self {
        let (generation, length) = task.instance.as_ref().map_or((0, 0), |it| (it.generation, it.length));
        let context = run_context(task.lease.task, task.submitted_at, &payload, program);
        let state = RunState::new(&context.template);
        Self { context, state, payload, children: Children::default(), generation, received: None, length, bytes: 0 }
    }

    /// Returns true if a moment of the run has come by a time.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.state.next_moment(&self.context.template).is_some_and(|moment| moment <= now)
    }

    /// Reads the history and folds its events.
    pub(super) async fn replay(&mut self, store: &dyn Store, task: TaskId) -> Result<()> {
        let mut position = 0;
        while position < self.length {
            let chunks = store.instance_history(task, position, bounds::HISTORY_CHUNKS).await?;
            if chunks.is_empty() {
                let (length, text) = (self.length, format!("the history of run {task} ends at event {position}"));
                return Err(onward_store::Error::corrupt(format!("{text} of {length}")).into());
            }
            for chunk in &chunks {
                for event in decode(&chunk.chunk).map_err(Error::invalid)? {
                    self.state.fold(&self.context, &event);
                }
                position = chunk.first + chunk.events;
                self.bytes += chunk.chunk.len() as u64;
            }
        }
        Ok(())
    }
}

/// Returns the constants of a run, which its expressions read.
pub(crate) fn run_context(
    task: TaskId,
    submitted_at: Timestamp,
    payload: &RunPayload,
    program: &Program,
) -> RunContext {
    let facts = RunFacts {
        id: task.0,
        name: program.template.name.clone(),
        key: payload.key.clone(),
        started_at: submitted_at,
        environment: payload.environment.clone(),
    };
    // A run below another one gets the defaults of its schema here.
    let input = program.check_input(payload.input.clone()).unwrap_or_else(|_| payload.input.clone());
    let (template, schemas) = (Arc::clone(&program.template), Arc::clone(&program.schemas));
    RunContext::new(template, schemas, Value::from(&input), facts)
}
