//! Playing a case from its start to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use onward_store::{Clock as _, ManualClock, Page, StoreReads, TaskFilter, TaskId, Timestamp, bounds as store_bounds};

use super::expect::mismatches;
use super::file::Case;
use super::handlers::{CaseState, register};
use super::report::CaseReport;
use super::rewrite::rewrite;
use crate::bounds;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::testing::next_step;
use crate::workflow::client::{RunView, StepView};
use crate::workflow::run::{Phase, StepState};
use crate::workflow::template::TemplateFile;
use crate::workflow::turn::EVENT_KIND_PREFIX;

/// The end of a played run.
pub(super) struct Ended {
    pub(super) view: RunView,
    pub(super) took: Duration,
    pub(super) result: Option<serde_json::Value>,
    /// The names of the published events, in order.
    pub(super) events: Vec<String>,
    /// The steps that ran without a result in the file, and those that wait for a signal.
    pub(super) missing: Vec<String>,
}

/// A case that is played.
struct CaseRun<'c> {
    case: &'c Case,
    engine: Engine,
    clock: Arc<ManualClock>,
    run: TaskId,
    begun: Timestamp,
    played: Arc<CaseState>,
    /// The waits to which a reply was sent, by step and start.
    sent: BTreeSet<(String, Option<Timestamp>)>,
}

/// Plays a case, and compares its end with what is expected.
pub(super) async fn play(file: &TemplateFile, name: &str, case: &Case) -> Result<CaseReport> {
    let template = rewrite(file, case)?;
    let clock = Arc::new(ManualClock::default());
    let engine = Engine::builder().memory().clock(clock.clone()).open().await?;
    let played = register(&engine, template.template(), case);
    let workflow = template.template().name.clone();
    engine.add_workflow(template);
    let start = engine.start_run(workflow).input(&case.input).without_key();
    let start = case.env.iter().fold(start, |start, name| start.environment(name));
    let begun = clock.now();
    let run = start.await?.id;
    let play = CaseRun { case, engine, clock, run, begun, played, sent: BTreeSet::new() };
    let ended = play.finish().await?;
    let mismatches = mismatches(&case.expect, &ended);
    let steps: BTreeMap<String, String> =
        ended.view.steps.iter().map(|step| (step.name.clone(), step.state.as_str().to_owned())).collect();
    Ok(CaseReport { name: name.to_owned(), mismatches, state: ended.view.phase, took: ended.took, steps })
}

impl CaseRun<'_> {
    async fn finish(mut self) -> Result<Ended> {
        for _ in 0..bounds::TEST_MOMENTS {
            self.engine.run_until_settled().await?;
            let view = self.engine.run_view(self.run).await?;
            if view.is_ended() || view.phase == Phase::Held {
                return self.ended(view, Vec::new()).await;
            }
            let due = match self.send_replies(&view).await? {
                Replied::Sent => continue,
                Replied::DueIn(due) => due,
            };
            let step = next_step(&self.engine).await?;
            let Some(step) = [step, due].into_iter().flatten().min() else {
                let waiting = view.steps.iter().filter(|step| step.signal.is_some()).map(|step| step.name.clone());
                let waiting = waiting.collect();
                return self.ended(view, waiting).await;
            };
            self.clock.advance(step);
        }
        let most = bounds::TEST_MOMENTS;
        Err(Error::invalid(format!("the run did not end in {most} moments of its clock; give its loop an end")))
    }

    /// Sends the signals whose time has come, or returns the time until the next one.
    async fn send_replies(&mut self, view: &RunView) -> Result<Replied> {
        let mut due: Option<Duration> = None;
        for step in view.steps.iter().filter(|step| step.state == StepState::Waiting) {
            let Some((signal, value, moment)) = self.reply(step) else { continue };
            let left = moment - self.clock.now();
            if left.is_zero() {
                self.engine.signal_run(self.run, signal, value).await?;
                self.sent.insert((step.name.clone(), step.started_at));
                return Ok(Replied::Sent);
            }
            due = Some(due.map_or(left, |due| due.min(left)));
        }
        Ok(Replied::DueIn(due))
    }

    /// Returns the signal, the value and the moment of the reply that a step waits for.
    fn reply<'v>(&'v self, step: &'v StepView) -> Option<(&'v str, &'v serde_json::Value, Timestamp)> {
        let (signal, outcome) = (step.signal.as_deref()?, self.case.steps.get(&step.name)?);
        let value = outcome.result.as_ref()?;
        let is_sent = self.sent.contains(&(step.name.clone(), step.started_at));
        let moment = step.started_at.unwrap_or(self.begun).plus(outcome.takes.unwrap_or_default());
        (!is_sent).then_some((signal, value, moment))
    }

    async fn ended(self, view: RunView, waiting: Vec<String>) -> Result<Ended> {
        let record = self.engine.record(self.run).await?;
        let result = record.result.bytes().and_then(|bytes| serde_json::from_slice(bytes).ok());
        let took = record.finished_at.unwrap_or_else(|| self.clock.now()) - self.begun;
        let missing = self.played.missing().into_iter().chain(waiting).collect();
        Ok(Ended { view, took, result, events: self.events().await?, missing })
    }

    async fn events(&self) -> Result<Vec<String>> {
        let (mut names, mut page) = (Vec::new(), Page { before: None, limit: store_bounds::PAGE });
        loop {
            let found = self.engine.store().tasks(TaskFilter::default(), page).await?;
            let name = |kind: &str| kind.strip_prefix(EVENT_KIND_PREFIX).map(str::to_owned);
            names.extend(found.tasks.iter().filter_map(|task| name(&task.kind)));
            match found.next {
                Some(before) => page.before = Some(before),
                None => break,
            }
        }
        // The store returns the newest first.
        names.reverse();
        Ok(names)
    }
}

/// The result of checking the steps that wait for signals.
enum Replied {
    Sent,
    DueIn(Option<Duration>),
}
