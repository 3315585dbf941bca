//! Runs that begin with the results of other runs.

use onward_store::{TaskId, bounds as store_bounds};

use super::list::{RunQuery, shown_phase};
use super::start::{RunStart, Selected};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::workflow::run::{Phase, RunContext, RunState};
use crate::workflow::template::TemplateHash;
use crate::workflow::turn::{RunPayload, RunSource, read_run};

/// Forks of runs.
impl Engine {
    /// Starts a run with the results of another one, which has ended or is held:
    /// `engine.fork_run(12, ["ship"]).await?` runs `ship` again, all behind it, and what did not
    /// complete. It has the template, the environment and, unless another is set, the input of that
    /// run, and no key. Steps that are taken over are not undone if the fork fails.
    pub fn fork_run(&self, run: TaskId, from: impl IntoIterator<Item = impl Into<String>>) -> RunStart {
        let mut start = self.start_run("").from_run(run, from);
        start.template = Selected::OfFork;
        start
    }

    /// Returns the newest run of a workflow in an environment that no other run started, with its
    /// phase. It searches the newest runs, in as many pages as [`RunQuery`] reads at once.
    ///
    /// # Errors
    /// If the store could not be read, or the name is none of a template.
    pub async fn last_run(&self, workflow: &str, environment: Option<&str>) -> Result<Option<LastRun>> {
        let query = RunQuery { workflow: Some(workflow.to_owned()), limit: store_bounds::PAGE, ..RunQuery::default() };
        for run in self.runs(query).await?.runs.into_iter().filter(|run| run.parent.is_none()) {
            let record = self.record(run.id).await?;
            let payload = record.payload.as_deref().and_then(|bytes| RunPayload::read(bytes).ok());
            if let Some(payload) = payload.filter(|payload| payload.environment.as_deref() == environment) {
                let (id, phase, template) = (run.id, run.phase, payload.template);
                let fork = payload.fork.map(|fork| (fork.steps, fork.only));
                return Ok(Some(LastRun { id, phase, template, fork }));
            }
        }
        Ok(None)
    }
}

/// The newest run of a workflow ([`Engine::last_run`]).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastRun {
    /// The task of the run.
    pub id: TaskId,
    /// The phase.
    pub phase: Phase,
    /// The template.
    pub template: TemplateHash,
    /// The steps that it ran of another run, and true if these alone run. `None` if it was started
    /// without another run.
    pub fork: Option<(Vec<String>, bool)>,
}

/// A run that is forked.
pub(super) struct Forked {
    pub(super) payload: RunPayload,
    pub(super) context: Box<RunContext>,
    pub(super) state: RunState,
}

impl Engine {
    /// Reads a run that is to be forked, and checks that nothing of it is under way.
    pub(super) async fn forked(&self, run: TaskId) -> Result<Forked> {
        let record = self.run_record(run).await?;
        let (context, state) = read_run(&self.inner.templates, &*self.inner.store, run).await?;
        let phase = shown_phase(state.phase(), record.state);
        if !phase.is_ended() && phase != Phase::Held {
            return Err(Error::invalid(format!(
                "run {run} is {}, and a fork would do its work twice; wait for its end, or cancel it: `onward workflow cancel {run}`",
                phase.as_str()
            )));
        }
        let bytes = record.payload.as_deref().unwrap_or_default();
        let source = RunSource::read(&*self.inner.store, run, record.submitted_at, bytes).await?;
        Ok(Forked { payload: source.payload, context, state })
    }
}
