//! The whole of a run: lines become tasks, an engine runs them, and ended ones are reported.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use onward::{Engine, HandlerOptions};
use onward_store::{Store, StoreReads, bounds};
use tokio_util::sync::CancellationToken;

use super::arguments::Arguments;
use super::dry_run;
use super::end_order::EndOrder;
use super::ended_lines::EndedLines;
use super::feed::{Feed, RESUME_REMEDY, SubmittedLine};
use super::halt::{FailureCount, Halt};
use super::handler::LineWork;
use super::identity::Identity;
use super::open_run::{self, OpenedRun};
use super::pacer::Pacer;
use super::record::{HEADER_BYTES, LineResult};
use super::report::Report;
use super::runs;
use super::sinks;
use super::template::Template;
use crate::apply::StuckReport;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::options::GlobalOptions;
use crate::output::{is_output_closed, remark};
use crate::process::{Interrupts, Runner, find_program, job_limit};
use crate::store_file;

/// The largest number of lines with a task that has not ended. It bounds memory; a larger number
/// would not be faster.
const UNFINISHED_LINES: usize = 2048;

/// The largest number of ended lines that wait, in input order, for an earlier line. Each takes 40
/// bytes.
const HELD_LINES: usize = 4_000_000;

/// Open files of this process for each command: both ends of the pipes for its three streams, until
/// the command has started.
const FILES_EACH: u64 = 6;

/// The grace of the engine for a handler, beyond the grace of the handler for its command.
const GRACE_MARGIN: Duration = Duration::from_secs(5);

/// The outcome of the work on the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunEnd {
    Finished,
    Interrupted,
    /// The reader of standard output closed it.
    OutputClosed,
    /// As many lines have failed as `--halt` allows.
    Halted,
}

/// Runs a command once per line.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.forget {
        Some(name) => runs::forget(options, name).await,
        None if arguments.list => runs::list(options).await,
        None => run_lines(options, arguments).await,
    }
}

async fn run_lines(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let template =
        Template::new(&arguments.command, arguments.way()).ok_or_else(|| wrong_usage("there is no command"))?;
    find_program(template.program())?;
    if arguments.dry_run {
        return dry_run::run(options, &arguments, &template);
    }
    sinks::check(options, &arguments)?;
    let arguments = Arc::new(arguments);
    let limit = arguments.capture.saturating_mul(2).saturating_add(HEADER_BYTES);
    let mut opened = open_run::open(&arguments)?;
    let store = store_file::open_with_payload_limit(options, limit.max(bounds::PAYLOAD_BYTES)).await?;
    if arguments.again {
        open_run::forget(options, &*store, &opened.identity).await?;
    } else {
        open_run::continue_run(&*store, &mut opened.identity, &arguments).await?;
    }
    let interrupts = Interrupts::listen()?;
    let report = Report::open(options, &arguments, &template, opened.total)?;
    let work = Arc::new(LineWork {
        store: Arc::clone(&store),
        template,
        limits: arguments.limits(),
        pacer: arguments.rate.map(|rate| Pacer::new(rate, store.clock())),
        runner: Runner::start(report.notices())?,
        failures: Arc::new(FailureCount::new(arguments.halt)),
    });
    let engine = engine(&arguments, &opened.identity, &store, &work).await?;
    let (identity, unit) = (opened.identity.clone(), arguments.unit());
    let before = store.clock().steady();
    let lines = Lines::new(engine, store, arguments, opened, report);
    let (outcome, lines) = lines.run(interrupts, &work).await?;
    let took = lines.store.clock().steady().saturating_sub(before);
    report_summary(options, &lines, &identity, unit, took);
    Ok(conclude(options, &lines, outcome))
}

async fn engine(
    arguments: &Arguments,
    identity: &Identity,
    store: &Arc<dyn Store>,
    work: &Arc<LineWork>,
) -> anyhow::Result<Engine> {
    let room = job_limit(arguments.jobs(), FILES_EACH)?;
    room.notice(arguments.jobs()).iter().for_each(remark);
    let engine = Engine::builder()
        .store(Arc::clone(store))
        .concurrency(room.jobs)
        .queues([identity.queue().as_str()])
        // A line that waits in this process's buffer could run in another process of the same run.
        .prefetch(0)
        .grace(arguments.limits().grace + GRACE_MARGIN)
        // A stopped engine asks the running commands to stop at once.
        .shutdown_limit(Duration::ZERO)
        .serves_reserved_kinds()
        .name(format!("onward each {}", std::process::id()))
        .open()
        .await?;
    if arguments.halt.is_some() {
        let failures = Arc::clone(&work.failures);
        engine.after_commit(move |transition| {
            failures.note(transition.change);
            std::future::ready(())
        });
    }
    let work = Arc::clone(work);
    // The policy is not part of the lines, so that a continued run has the one of its own command
    // line.
    let options = HandlerOptions::new().retry(arguments.retry_policy());
    engine.handle_with(bounds::EACH_KIND, options, move |context| Arc::clone(&work).attempt(context));
    Ok(engine)
}

fn report_summary(options: &GlobalOptions, lines: &Lines, identity: &Identity, unit: &str, took: Duration) {
    lines.report.close();
    let tally = lines.report.tally();
    if options.json {
        remark(tally.json(identity.run(), took));
    } else {
        remark(tally.text(took, unit));
        tally.cut_text(unit).iter().for_each(remark);
    }
}

fn conclude(options: &GlobalOptions, lines: &Lines, outcome: RunEnd) -> ExitCode {
    match outcome {
        RunEnd::Interrupted => {
            remark(format_args!(
                "interrupted; finished lines are kept in {}. Run the same command on the same input to continue",
                options.store
            ));
            ExitCode::Interrupted
        }
        RunEnd::OutputClosed => {
            remark(format_args!(
                "standard output was closed before the end; finished lines are kept in {}. Run the same command on the same input to continue",
                options.store
            ));
            ExitCode::OutputClosed
        }
        RunEnd::Halted => {
            remark(format_args!(
                "halted by --halt; finished lines are kept in {}. Run the same command on the same input to continue, with --retry-failed \
                 to retry failed lines",
                options.store
            ));
            ExitCode::Failed
        }
        RunEnd::Finished if lines.report.tally().failed > 0 => ExitCode::Failed,
        RunEnd::Finished => ExitCode::Done,
    }
}

/// The lines in progress.
struct Lines {
    engine: Engine,
    store: Arc<dyn Store>,
    feed: Feed,
    unfinished: FuturesUnordered<BoxFuture<'static, anyhow::Result<SubmittedLine>>>,
    /// The lines of these futures, by position.
    pending: BTreeMap<u64, SubmittedLine>,
    ended: EndedLines,
    end_order: EndOrder,
    count: u64,
    report: Report,
    stuck: StuckReport,
    halt: Option<Halt>,
}

impl Lines {
    fn new(
        engine: Engine,
        store: Arc<dyn Store>,
        arguments: Arc<Arguments>,
        opened: OpenedRun,
        report: Report,
    ) -> Self {
        let (ended, halt, pending) = (EndedLines::new(arguments.order), arguments.halt, BTreeMap::new());
        let end_order = EndOrder::new(arguments.order, &*store);
        let feed = Feed::new(Arc::clone(&store), arguments, opened);
        let unfinished = FuturesUnordered::new();
        let stuck = StuckReport::new();
        Self { engine, store, feed, unfinished, pending, ended, end_order, count: 0, report, stuck, halt }
    }

    /// Works until every line has ended and is reported, until an interrupt, or until enough lines
    /// have failed. Then stops the engine and waits for it. A further interrupt kills the running
    /// commands.
    async fn run(mut self, mut interrupts: Interrupts, work: &LineWork) -> anyhow::Result<(RunEnd, Self)> {
        let (engine, stopped) = (self.engine.clone(), CancellationToken::new());
        // The guard lives in the task of the engine. It cancels `stopped` however that task ends,
        // also by a panic, so `work` never waits for lines that nothing runs.
        let guard = stopped.clone().drop_guard();
        let running = tokio::spawn(async move {
            let _guard = guard;
            engine.run().await
        });
        let outcome = match self.work(&mut interrupts, work, &stopped).await {
            Err(error) if is_output_closed(&error) => Ok(RunEnd::OutputClosed),
            outcome => outcome,
        };
        // `soon` lets running commands end, so they have to end before the engine is stopped.
        if matches!(outcome, Ok(RunEnd::Halted)) && self.halt.is_some_and(|halt| !halt.now) {
            tokio::select! {
                () = work.runner.wind_down() => {}
                () = interrupts.next() => {}
            }
        }
        self.engine.stop();
        tokio::select! {
            ended = running => {
                ended?.context(RESUME_REMEDY)?;
                let outcome = outcome?;
                if outcome == RunEnd::Halted {
                    self.report_what_ended().await?;
                }
                Ok((outcome, self))
            }
            () = interrupts.next() => {
                work.runner.kill_all();
                outcome?;
                Ok((RunEnd::Interrupted, self))
            }
        }
    }

    /// Processes events until the work ends. `stopped` is cancelled when the engine stops, which it
    /// does by itself only if the store fails.
    async fn work(
        &mut self,
        interrupts: &mut Interrupts,
        work: &LineWork,
        stopped: &CancellationToken,
    ) -> anyhow::Result<RunEnd> {
        while !self.is_done() {
            let has_room = self.has_room();
            tokio::select! {
                lines = self.feed.next(), if has_room => self.submit(lines?).await?,
                Some(submitted) = self.unfinished.next() => self.take_ended(submitted?).await?,
                () = interrupts.next() => return Ok(RunEnd::Interrupted),
                () = work.failures.reached() => return Ok(RunEnd::Halted),
                () = self.stuck.due() => self.report_stuck().await?,
                why = work.runner.given_up() => anyhow::bail!("{why}; {RESUME_REMEDY}"),
                () = stopped.cancelled() => anyhow::bail!("the engine stopped; run the same command again to continue"),
            }
        }
        Ok(RunEnd::Finished)
    }

    /// Reports once why the first line that has not ended waits, if it waits for an action of the
    /// user.
    async fn report_stuck(&mut self) -> anyhow::Result<()> {
        let first = self.pending.first_key_value().map(|(_, submitted)| *submitted);
        let reasons = self.stuck.look(&*self.store, first.map(|submitted| submitted.task)).await?;
        if let Some(submitted) = first {
            let notice = self.report.notices();
            reasons.iter().for_each(|reason| notice(&format!("line {} waits: {reason}", submitted.line)));
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.feed.has_ended() && self.unfinished.is_empty() && self.ended.len() == 0
    }

    fn has_room(&self) -> bool {
        !self.feed.has_ended() && self.unfinished.len() < UNFINISHED_LINES && self.ended.len() < HELD_LINES
    }

    async fn submit(&mut self, lines: Vec<crate::input::Line>) -> anyhow::Result<()> {
        if lines.is_empty() {
            self.report.total(self.feed.submitted());
            return Ok(());
        }
        let (earlier, new): (Vec<_>, Vec<_>) =
            self.feed.submit(lines).await?.into_iter().partition(|submitted| submitted.earlier);
        for submitted in new {
            let engine = self.engine.clone();
            self.pending.insert(submitted.position, submitted);
            self.end_order.add(submitted);
            self.unfinished.push(Box::pin(async move {
                engine.wait(submitted.task).await?;
                Ok(submitted)
            }));
        }
        for submitted in earlier {
            self.report_ended(submitted).await?;
        }
        Ok(())
    }

    /// Reports the lines that have ended, even if earlier lines have not.
    async fn report_what_ended(&mut self) -> anyhow::Result<()> {
        let held = self.ended.take_all();
        for submitted in std::mem::take(&mut self.pending).into_values().chain(held) {
            if let Some(record) = self.store.task(submitted.task).await?.filter(|record| record.state.is_ended()) {
                self.report.line(&LineResult::of(submitted.line, record), submitted.earlier)?;
            }
        }
        Ok(())
    }

    /// Reports a line whose task has ended, after those that ended before it.
    async fn take_ended(&mut self, submitted: SubmittedLine) -> anyhow::Result<()> {
        for position in self.end_order.take_until(submitted) {
            if let Some(submitted) = self.pending.remove(&position) {
                self.report_ended(submitted).await?;
            }
        }
        Ok(())
    }

    async fn report_ended(&mut self, submitted: SubmittedLine) -> anyhow::Result<()> {
        self.count += 1;
        self.report.ended(self.count);
        self.ended.push(submitted);
        while let Some(submitted) = self.ended.pop() {
            let record = self.store.task(submitted.task).await?;
            let pruned = || LineResult { line: submitted.line, ..LineResult::default() };
            let result = record.map_or_else(pruned, |record| LineResult::of(submitted.line, record));
            self.report.line(&result, submitted.earlier)?;
        }
        Ok(())
    }
}
