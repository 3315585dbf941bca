//! Following a run as its history grows.

use onward_store::{Changes, Hold, Refusal, StoreReads, TaskId, TaskRecord, TaskState};

use super::list::shown_phase;
use super::view::{RunView, run_view};
use crate::bounds;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::workflow::run::{
    ActionKind, Phase, RUN_KIND_PREFIX, RunContext, RunState, StepResultSource, check_action, check_signal, decode,
    repliers,
};
use crate::workflow::template::Template;
use crate::workflow::turn::{RunSource, check_room, run_context};

/// A reader of one run, wherever it runs. Each new event of the history is read once.
pub struct RunFollower {
    engine: Engine,
    run: TaskId,
    context: RunContext,
    state: RunState,
    /// The number of events that were read.
    position: u64,
    /// The size of the history, in bytes.
    bytes: u64,
    /// The state of the run's task, read before the history.
    task: TaskState,
    changes: Changes,
    is_first: bool,
}

impl std::fmt::Debug for RunFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunFollower").field("run", &self.run).field("position", &self.position).finish_non_exhaustive()
    }
}

impl Engine {
    /// Returns the record of the task of a run.
    pub(super) async fn run_record(&self, run: TaskId) -> Result<TaskRecord> {
        let record = self.record(run).await;
        let record = record.map_err(|error| if is_missing_task(&error) { Error::no_run(run) } else { error })?;
        if record.kind.starts_with(RUN_KIND_PREFIX) {
            return Ok(record);
        }
        let kind = &record.kind;
        Err(Error::invalid(format!(
            "task {run} of kind `{kind}` is not a run of a workflow; see `onward task show {run}`"
        )))
    }
}

/// Reading runs.
impl Engine {
    /// Returns a run and its steps as they are now.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); [`is_invalid`](Error::is_invalid) if the task is not
    /// a run, or neither this engine nor its store has its template.
    pub async fn run_view(&self, run: TaskId) -> Result<RunView> {
        self.follow_run(run).await?.read().await
    }

    /// Follows a run: [`RunFollower::next`] returns each state of it.
    ///
    /// # Errors
    /// As [`run_view`](Self::run_view).
    pub async fn follow_run(&self, run: TaskId) -> Result<RunFollower> {
        let changes = self.store().changes();
        let record = self.run_record(run).await?;
        let bytes = record.payload.as_deref().unwrap_or_default();
        let source = RunSource::read(&**self.store(), run, record.submitted_at, bytes).await?;
        let payload = &source.payload;
        let templates = &self.inner.templates;
        let program = templates.program(&**self.store(), payload.template, payload.environment.as_deref()).await?;
        let program = program.ok_or_else(|| {
            let hash = payload.template;
            Error::invalid(format!("neither this engine nor its store has the template {hash} of run {run}"))
        })?;
        let context = run_context(&source, &program);
        let state = RunState::new(&context.template);
        let task = record.state;
        Ok(RunFollower {
            engine: self.clone(),
            run,
            context,
            state,
            position: 0,
            bytes: 0,
            task,
            changes,
            is_first: true,
        })
    }
}

fn is_missing_task(error: &Error) -> bool {
    matches!(error.refusal(), Some(Refusal::TaskNotFound(_)))
}

impl RunFollower {
    /// Waits until the history has grown since the last call, and returns the new state: the first
    /// call returns at once. Returns `None` when the run has ended and its last state was returned.
    /// Cancel-safe; it does not poll.
    ///
    /// # Errors
    /// The store's error, or `is_not_found` if the run was deleted.
    pub async fn next(&mut self) -> Result<Option<RunView>> {
        loop {
            self.changes.hint();
            let before = self.position;
            // In this order, the history of an ended run is its last one.
            self.task = self.engine.record(self.run).await?.state;
            let view = self.read().await?;
            if self.position > before || std::mem::take(&mut self.is_first) {
                return Ok(Some(view));
            }
            if self.task.is_ended() {
                return Ok(None);
            }
            if self.changes.changed().await.is_none() {
                return Err(onward_store::Error::closed().into());
            }
        }
    }

    /// Reads the whole history.
    pub(super) async fn at_end(mut self) -> Result<Self> {
        self.read().await?;
        Ok(self)
    }

    /// Reads the history up to now, and returns the state.
    pub(super) async fn view(&mut self) -> Result<RunView> {
        self.read().await
    }

    /// Returns the phase, as far as the history was read.
    pub(super) fn phase(&self) -> Phase {
        self.state.phase()
    }

    /// Checks that the run allows an action now.
    pub(super) fn check(&self, action: &ActionKind) -> Result<()> {
        check_action(&self.context, &self.state, action).map(drop).map_err(Error::invalid)
    }

    /// Checks that the history has room for another message.
    pub(super) fn check_room(&self) -> Result<()> {
        check_room(&self.engine.inner.settings, self.run, self.position, self.bytes)
    }

    /// Checks that a step takes a signal.
    pub(super) fn check_signal(&self, name: &str, payload: &serde_json::Value) -> Result<()> {
        check_signal(&self.context, &self.state, name, &payload.into()).map(drop).map_err(Error::invalid)
    }

    /// Reads what the history has since the last read, and returns the state.
    async fn read(&mut self) -> Result<RunView> {
        let store = self.engine.store();
        let instance = store.instance(self.run).await?.unwrap_or_default();
        let (length, is_paused) = (instance.length, matches!(instance.hold, Hold::Paused | Hold::PausedDue));
        self.bytes = instance.bytes;
        while self.position < length {
            let chunks = store.instance_history(self.run, self.position, bounds::HISTORY_CHUNKS).await?;
            if chunks.is_empty() {
                break;
            }
            for chunk in &chunks {
                for event in decode(&chunk.chunk).map_err(Error::invalid)? {
                    self.state.fold_read(&self.context, &event).map_err(Error::invalid)?;
                }
                self.position = chunk.first + chunk.events;
            }
        }
        let view = run_view(&self.context, &self.state, self.run, is_paused);
        let phase = shown_phase(view.phase, self.task);
        Ok(RunView { is_paused: view.is_paused && !phase.is_ended(), phase, ..view })
    }

    /// Returns the people and roles who may send a signal, as far as the history was read.
    pub(super) fn repliers(&self, name: &str) -> Vec<String> {
        repliers(&self.context, &self.state, name).to_vec()
    }

    /// Returns the place of a step's result, as far as the history was read.
    pub(super) fn result_source(&self, step: &str) -> StepResultSource {
        self.context.template.number(step).map_or(StepResultSource::None, |step| self.state.result_source(step))
    }

    /// Returns the template, in the environment of the run.
    pub(super) fn template(&self) -> &Template {
        &self.context.template
    }

    /// Returns the name of the run's template.
    #[must_use]
    pub fn workflow(&self) -> &str {
        &self.context.facts.name
    }

    /// Returns the state in which the task of the run is now.
    ///
    /// # Errors
    /// The store's error, or `is_not_found` if the run was deleted.
    pub async fn task_state(&self) -> Result<TaskState> {
        Ok(self.engine.record(self.run).await?.state)
    }
}
