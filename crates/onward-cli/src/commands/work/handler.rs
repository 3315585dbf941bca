//! The engine's handler, which runs the command of a task.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward::handlers::Interruption;
use onward::{Context, Failure};
use tokio_util::sync::CancellationToken;

use super::batch_input;
use super::console::Console;
use super::outcome::{Reported, outcome};
use super::output_directory::OutputDirectory;
use super::report::Report;
use super::report_pipe::ReportPipe;
use crate::process::{End, Finished, Invocation, Limits, NotRun, Program, Runner};

/// The delay after which a task is due again after a fault of the worker.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// The shared state of all tasks of a worker.
#[derive(Debug)]
pub(super) struct TaskWork {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) limits: Limits,
    pub(super) runner: Arc<Runner>,
    pub(super) report_pipes: PathBuf,
    pub(super) console: Arc<Console>,
    pub(super) output_directory: Option<OutputDirectory>,
}

impl TaskWork {
    /// Runs one attempt.
    pub(super) async fn attempt(self: Arc<Self>, context: Context) -> Result<Bytes, Failure> {
        let stop = context.cancelled();
        let Some(report_pipe) = alive(&context, self.report_pipe(&context, &stop)).await else {
            return Err(returned(&context));
        };
        let stdin = batch_input::stdin(&context).await.map_err(|error| worker_failure(error.message()))?;
        let invocation = self.invocation(&context, &report_pipe, stdin);
        let (finished, reported) = match alive(&context, self.runner.begin(invocation, &stop)).await {
            Ok(program) => self.finish(&context, report_pipe, program).await,
            Err(why) => Err(why),
        }
        .map_err(|why| self.not_run(&context, why))?;
        self.show(&context, &finished).await;
        context.result_is_output();
        outcome(finished, reported, self.limits.capture)
    }

    /// Writes the command's output to files and to standard error, as requested. A failed write is
    /// reported and does not affect the outcome of the task.
    async fn show(&self, context: &Context, finished: &Finished) {
        if let Some(directory) = &self.output_directory
            && let Err(error) = directory.write(context, finished).await
        {
            let path = directory.path().display();
            self.console
                .fault(&format!("--output-dir {path}: the output of task {} cannot be written: {error}", context.id()));
        }
        if finished.end == End::Exited(0) {
            self.console.stderr(context.id(), &finished.stderr);
        }
    }

    async fn report_pipe(&self, context: &Context, stop: &CancellationToken) -> Option<ReportPipe> {
        let name = format!("task-{}-{}", context.id(), context.attempt());
        let make = || {
            ReportPipe::open(&self.report_pipes, &name)
                .map_err(|error| format!("cannot make a pipe for reports in {}: {error}", self.report_pipes.display()))
        };
        self.runner.prepare(stop, make).await
    }

    async fn finish(
        &self,
        context: &Context,
        mut report_pipe: ReportPipe,
        program: Program<'_>,
    ) -> Result<(Finished, Reported), NotRun> {
        let (stop, mut reported) = (context.cancelled(), Reported::default());
        let running = program.finish(self.limits, &stop, |stream, bytes| context.output(stream, bytes));
        tokio::pin!(running);
        let finished = loop {
            tokio::select! {
                finished = &mut running => break finished?,
                line = report_pipe.next() => take(context, &mut reported, &line.map_err(NotRun::Lost)?),
            }
        };
        report_pipe.rest().iter().for_each(|line| take(context, &mut reported, line));
        Ok((finished, reported))
    }

    /// Returns the failure of a command that did not run. The arguments come from the command line
    /// and not from the task, so the worker gives up if the system rejects them.
    fn not_run(&self, context: &Context, why: NotRun) -> Failure {
        match why {
            NotRun::Stopped => returned(context),
            NotRun::Refused(error) => {
                self.runner.give_up(format!("cannot start `{}` with these arguments: {error}", self.program.display()));
                returned(context)
            }
            NotRun::Lost(error) => worker_failure(&format!("the end of the command is unknown: {error}")),
        }
    }

    fn invocation(&self, context: &Context, report_pipe: &ReportPipe, stdin: Bytes) -> Invocation {
        let mut environment = vec![
            ("ONWARD_TASK_ID".into(), context.id().to_string().into()),
            ("ONWARD_KIND".into(), context.kind().as_str().into()),
            ("ONWARD_QUEUE".into(), context.queue().as_str().into()),
            ("ONWARD_ATTEMPT".into(), context.attempt().to_string().into()),
            ("ONWARD_TOKEN".into(), context.completion_token().to_string().into()),
            ("ONWARD_REPORT".into(), report_pipe.path().as_os_str().to_owned()),
        ];
        if let Some(at) = context.scheduled_at() {
            environment.push(("ONWARD_SCHEDULED_AT".into(), at.to_string().into()));
        }
        if context.item_count() > 0 {
            environment.push(("ONWARD_BATCH_ITEMS".into(), context.item_count().to_string().into()));
        }
        let (program, arguments) = (self.program.clone(), self.arguments.clone());
        Invocation { program, arguments, environment, stdin: Some(stdin) }
    }
}

/// Returns a task that was not started to its queue. The attempt is not counted, even if its
/// timeout has expired: the engine counts any failure after a timeout, but no move, so the task is
/// moved to the queue that it has.
fn returned(context: &Context) -> Failure {
    match context.interruption() {
        Some(Interruption::TimedOut | Interruption::HeartbeatMissed) => Failure::move_to(context.queue().as_str()),
        _ => Failure::not_counted("stopped before it was started", AFTER_FAULT),
    }
}

/// Returns the failure for a fault of this process or of its store, which does not count as an
/// attempt.
fn worker_failure(message: &str) -> Failure {
    Failure::not_counted(message, AFTER_FAULT)
}

/// Sends heartbeats for a command that waits to be started.
async fn alive<T>(context: &Context, waiting: impl Future<Output = T>) -> T {
    let Some(limit) = context.heartbeat_timeout() else { return waiting.await };
    tokio::pin!(waiting);
    loop {
        tokio::select! {
            biased;
            output = &mut waiting => return output,
            () = tokio::time::sleep(limit / 4) => context.heartbeat(),
        }
    }
}

fn take(context: &Context, reported: &mut Reported, line: &str) {
    match Report::parse(line) {
        Ok(Report::Progress(fraction, Some(message))) => context.progress_message(fraction, message),
        Ok(Report::Progress(fraction, None)) => context.progress(fraction),
        Ok(Report::Heartbeat) => context.heartbeat(),
        Ok(Report::RetryAfter(after)) => reported.retry_after = Some(after),
        Ok(Report::Fail(message)) => reported.fail = Some(message),
        Ok(Report::CompleteLater(None)) => reported.instead = Some(Failure::await_completion()),
        Ok(Report::CompleteLater(Some(within))) => reported.instead = Some(Failure::await_completion_within(within)),
        // The task would be claimed again at once and without end, since a move counts no attempt.
        Ok(Report::Move(queue)) if queue == *context.queue() => {
            reported.instead = Some(Failure::retryable(format!(
                "it moves to the queue `{queue}`, in which it is already; move it only if ONWARD_QUEUE is another one"
            )));
        }
        Ok(Report::Move(queue)) => reported.instead = Some(Failure::move_to(queue.as_str())),
        Err(wrong) => tracing::warn!(task = %context.id(), "the command sent an invalid report: {wrong}"),
    }
}
