//! Runs an engine until it is stopped, idle or drained.

use std::sync::Arc;

use onward_store::Name;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::inner::{CurrentRun, Engine, Inner, lock};
use super::run::Run;
use crate::dispatch::{Dispatcher, Goal, Outbox, RunState};
use crate::error::{Error, Result};
use crate::observe::{DrainSummary, Hooks};
use crate::orchestration::replay::store_guard;
use crate::orchestration::{Evictor, InstanceCache};
use crate::schedules::Scheduler;
use crate::{bounds, timer};

/// Running. An engine has one run at a time; handlers run as tasks of the tokio runtime.
///
/// Dropping the future of a run is like [`stop`](Engine::stop): the run ends in the background.
impl Engine {
    /// Runs tasks and fires [schedules](Self::schedule) until [`stop`](Self::stop).
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if a registration is invalid or the engine runs already;
    /// the store's error if the store failed permanently. The run waits out transient errors of the
    /// store.
    pub async fn run(&self) -> Result<()> {
        self.run_to(Goal::Stopped).await.map(drop)
    }

    /// Runs tasks as [`run`](Self::run) does, and returns a summary of their ends.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until_stopped(&self) -> Result<DrainSummary> {
        self.run_to(Goal::Stopped).await
    }

    /// Runs tasks until every task that this engine could run has ended.
    ///
    /// It waits for tasks that are due later, for tasks that other engines run, for pauses with an
    /// end, and for limits that hold tasks back until other tasks end or a token arrives. It leaves
    /// tasks under a pause without an end, tasks that wait to be [completed
    /// externally](crate::Failure::await_completion), and kinds and queues that this engine does
    /// not serve. It fires no schedules.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn drain(&self) -> Result<DrainSummary> {
        self.run_to(Goal::Drained).await
    }

    /// Fires the schedules that are due, and runs tasks until nothing is due and nothing runs here.
    /// It waits for tasks that a [rate](crate::limits::Rate) holds back. It leaves tasks that are
    /// due later, and tasks that wait because other engines use up a concurrency limit.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until_idle(&self) -> Result<DrainSummary> {
        self.run_to(Goal::Idle).await
    }

    /// Runs as [`run_until_idle`](Self::run_until_idle) does, but leaves tasks that a rate or
    /// pressure holds back.
    pub(crate) async fn run_until_settled(&self) -> Result<DrainSummary> {
        self.run_to(Goal::Settled).await
    }

    /// Stops the run. It claims nothing more, releases what has not started, and waits for running
    /// handlers up to the [shutdown limit](crate::EngineBuilder::shutdown_limit). Handlers that
    /// still run are then asked to stop and aborted after their
    /// [grace](crate::EngineBuilder::grace); their tasks are released without counting the attempt.
    /// The run's future completes after that. If nothing runs, the next run ends at once.
    pub fn stop(&self) {
        lock(&self.inner.current).stop.cancel();
    }

    /// Sets the [credit](crate::EngineBuilder::on_credit) of this engine to `total` calls of
    /// handlers, counted over its whole life. A total below the calls so far stops new ones.
    pub fn grant(&self, total: usize) {
        self.inner.credit.grant(total);
        self.wake();
    }

    /// Leaves tasks of these kinds to other engines, until another call replaces the list. Tasks
    /// that are claimed already still run. It has no effect on kinds of a pattern (`mail:*`).
    pub fn skip_kinds(&self, kinds: impl IntoIterator<Item = Name>) {
        self.inner.skipped_kinds.set(kinds.into_iter().collect());
        self.wake();
    }

    fn wake(&self) {
        if let Some(run) = self.inner.run() {
            run.state.wake();
        }
    }

    async fn run_to(&self, goal: Goal) -> Result<DrainSummary> {
        let (run, stop) = self.begin()?;
        // If the caller drops its future, the spawned run stops in the background.
        let stop_when_dropped = stop.clone().drop_guard();
        // The spawned task drops `ending` last, so the next run can only begin when this one is
        // over.
        let ending = EndOfRun(Arc::clone(&self.inner));
        let dispatcher = Dispatcher::new(Arc::clone(&run), goal, stop);
        let engine = self.clone();
        let finished = tokio::spawn(async move {
            let hooks = run.hooks.start(&run.inner);
            let _evicting = evict_ended(&run);
            let result = engine.run_with_schedules(goal, dispatcher).await;
            finish_hooks(&run, hooks).await;
            drop(ending);
            result
        })
        .await;
        drop(stop_when_dropped);
        match finished {
            Ok(result) => result,
            Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            Err(_) => Err(onward_store::Error::closed().caused_by("the tokio runtime shuts down").into()),
        }
    }

    /// Runs the dispatcher, and fires schedules as long as it runs. Schedules have a task of their
    /// own because the dispatcher wakes up often.
    async fn run_with_schedules(self, goal: Goal, dispatcher: Dispatcher) -> Result<DrainSummary> {
        match goal {
            Goal::Drained => dispatcher.run().await,
            Goal::Idle | Goal::Settled => {
                Scheduler::new(self).run_once().await;
                dispatcher.run().await
            }
            Goal::Stopped => {
                let over = dispatcher.stop_token().child_token();
                let over_when_dropped = over.clone().drop_guard();
                let (scheduler, scheduler_over) = (Scheduler::new(self.clone()), over.clone());
                let scheduler = tokio::spawn(async move { scheduler.run(&scheduler_over).await });
                let (forgetful, forget_over) = (self.clone(), over.clone());
                let retention = self.inner.settings.retention;
                let retention = tokio::spawn(async move { retention.run(&forgetful, &forget_over).await });
                let providers = tokio::spawn(async move { self.inner.providers.run(&self, &over).await });
                let result = dispatcher.run().await;
                drop(over_when_dropped);
                // These tasks end early only if the runtime shuts down or if they have nothing to
                // do.
                let _ = tokio::join!(scheduler, retention, providers);
                result
            }
        }
    }

    fn begin(&self) -> Result<(Arc<Run>, CancellationToken)> {
        store_guard::check()?;
        let app_state = lock(&self.inner.app_state).clone();
        let orchestrations = self.inner.codes()?;
        let runs_workflows = self.inner.settings.runs_workflows || self.inner.templates.has_some();
        let run = Arc::new(Run {
            handlers: lock(&self.inner.registrations).table(
                &app_state,
                &orchestrations,
                runs_workflows,
                self.inner.settings.serves_reserved,
            )?,
            orchestrations,
            runs_workflows,
            instances: InstanceCache::new(
                self.inner.settings.orchestrations_cached,
                self.inner.settings.turns,
                &self.inner.telemetry.orchestrations,
            ),
            app_state,
            outbox: Outbox::default(),
            state: RunState::default(),
            hooks: Hooks::new(&lock(&self.inner.hooks)),
            inner: Arc::clone(&self.inner),
        });
        let mut current = lock(&self.inner.current);
        if current.run.is_some() {
            return Err(runs_already(current.stop.is_cancelled()));
        }
        current.run = Some(Arc::clone(&run));
        Ok((run, current.stop.clone()))
    }
}

/// Frees the memory of orchestrations that end, until the returned set is dropped.
fn evict_ended(run: &Arc<Run>) -> JoinSet<()> {
    let mut evicting = JoinSet::new();
    if run.has_turns() {
        evicting.spawn(Evictor::new(run).run());
    }
    evicting
}

/// Returns the error for a second run. Its text depends on whether the first run is stopping.
#[cold]
fn runs_already(is_stopping: bool) -> Error {
    Error::invalid(if is_stopping {
        "the last run of this engine has not ended: it was stopped, or its future was dropped, and it waits for running handlers up to its \
         shutdown limit; keep the future of a run, call `stop`, and await the future before the next run"
    } else {
        "the engine runs already; raise its concurrency instead of running it twice"
    })
}

/// Waits until the hooks have received everything, but at most for the shutdown limit or
/// [`bounds::HOOK_SHUTDOWN_LIMIT`], whichever is longer.
async fn finish_hooks(run: &Run, mut hooks: JoinSet<()>) {
    if run.hooks.is_empty() {
        return;
    }
    run.hooks.close();
    let clock = &*run.inner.clock;
    let over_at = clock.steady().saturating_add(run.inner.settings.shutdown_limit.max(bounds::HOOK_SHUTDOWN_LIMIT));
    tokio::select! {
        biased;
        () = async { while hooks.join_next().await.is_some() {} } => {}
        () = timer::reached(clock, over_at) => {
            tracing::warn!("a hook did not process all changes within the shutdown limit and is aborted");
        }
    }
}

/// A guard that makes room for the next run when it is dropped, even after a panic.
struct EndOfRun(Arc<Inner>);

impl Drop for EndOfRun {
    fn drop(&mut self) {
        *lock(&self.0.current) = CurrentRun::default();
    }
}
