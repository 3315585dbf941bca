//! The engine's handler, which runs the command of a task.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward::{Context, Failure, Interruption};
use tokio_util::sync::CancellationToken;

use super::console::Console;
use super::mailbox::Mailbox;
use super::members;
use super::output_directory::OutputDirectory;
use super::report::Report;
use super::verdict::{Said, judge};
use crate::process::{End, Finished, Invocation, Limits, NotRun, Program, Runner};

/// The delay after which a task is due again after a fault of the worker.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// The shared state of all tasks of a worker.
#[derive(Debug)]
pub(super) struct TaskWork {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) limits: Limits,
    pub(super) runner: Runner,
    pub(super) mailboxes: PathBuf,
    pub(super) console: Arc<Console>,
    pub(super) output_directory: Option<OutputDirectory>,
}

impl TaskWork {
    /// Runs one attempt.
    pub(super) async fn attempt(self: Arc<Self>, context: Context) -> Result<Bytes, Failure> {
        let stop = context.cancelled();
        let Some(mailbox) = alive(&context, self.mailbox(&context, &stop)).await else {
            return Err(given_back(&context));
        };
        let stdin = members::stdin(&context).await.map_err(|error| of_worker(error.message()))?;
        let invocation = self.invocation(&context, &mailbox, stdin);
        let (finished, said) = match alive(&context, self.runner.begin(invocation, &stop)).await {
            Ok(program) => self.finish(&context, mailbox, program).await,
            Err(why) => Err(why),
        }
        .map_err(|why| self.not_run(&context, why))?;
        self.show(&context, &finished).await;
        judge(finished, said, self.limits.capture)
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

    async fn mailbox(&self, context: &Context, stop: &CancellationToken) -> Option<Mailbox> {
        let name = format!("task-{}-{}", context.id(), context.attempt());
        let make = || {
            Mailbox::open(&self.mailboxes, &name)
                .map_err(|error| format!("cannot make a pipe for reports in {}: {error}", self.mailboxes.display()))
        };
        self.runner.prepare(stop, make).await
    }

    async fn finish(
        &self,
        context: &Context,
        mut mailbox: Mailbox,
        program: Program<'_>,
    ) -> Result<(Finished, Said), NotRun> {
        let (stop, mut said) = (context.cancelled(), Said::default());
        let running = program.finish(self.limits, &stop);
        tokio::pin!(running);
        let finished = loop {
            tokio::select! {
                finished = &mut running => break finished?,
                line = mailbox.next() => take(context, &mut said, &line.map_err(NotRun::Lost)?),
            }
        };
        mailbox.rest().iter().for_each(|line| take(context, &mut said, line));
        Ok((finished, said))
    }

    /// Returns the failure of a command that did not run. The arguments come from the command line
    /// and not from the task, so the worker gives up if the system rejects them.
    fn not_run(&self, context: &Context, why: NotRun) -> Failure {
        match why {
            NotRun::Stopped => given_back(context),
            NotRun::Refused(error) => {
                self.runner.give_up(format!("cannot start `{}` with these arguments: {error}", self.program.display()));
                given_back(context)
            }
            NotRun::Lost(error) => of_worker(&format!("it cannot be told how the command ended: {error}")),
        }
    }

    fn invocation(&self, context: &Context, mailbox: &Mailbox, stdin: Bytes) -> Invocation {
        let mut environment = vec![
            ("ONWARD_TASK_ID", context.id().to_string().into()),
            ("ONWARD_KIND", context.kind().as_str().into()),
            ("ONWARD_QUEUE", context.queue().as_str().into()),
            ("ONWARD_ATTEMPT", context.attempt().to_string().into()),
            ("ONWARD_TOKEN", context.completion_token().to_string().into()),
            ("ONWARD_REPORT", mailbox.path().as_os_str().to_owned()),
        ];
        if let Some(at) = context.scheduled_at() {
            environment.push(("ONWARD_SCHEDULED_AT", at.to_string().into()));
        }
        if context.member_count() > 0 {
            environment.push(("ONWARD_MEMBERS", context.member_count().to_string().into()));
        }
        let (program, arguments) = (self.program.clone(), self.arguments.clone());
        Invocation { program, arguments, environment, stdin: Some(stdin) }
    }
}

/// Returns a task that was not started to its queue. The attempt is not counted, even if its
/// timeout has expired.
fn given_back(context: &Context) -> Failure {
    match context.interruption() {
        Some(Interruption::TimedOut | Interruption::Silent) => Failure::move_to(context.queue().as_str()),
        _ => Failure::not_counted("stopped before it was started", AFTER_FAULT),
    }
}

/// Returns the failure for a fault of this process or of its store, which does not count as an
/// attempt.
fn of_worker(message: &str) -> Failure {
    Failure::not_counted(message, AFTER_FAULT)
}

/// Sends heartbeats for a command that waits to be started.
async fn alive<T>(context: &Context, waiting: impl Future<Output = T>) -> T {
    let Some(limit) = context.heartbeat_timeout() else { return waiting.await };
    tokio::pin!(waiting);
    loop {
        tokio::select! {
            biased;
            answer = &mut waiting => return answer,
            () = tokio::time::sleep(limit / 4) => context.heartbeat(),
        }
    }
}

fn take(context: &Context, said: &mut Said, line: &str) {
    match Report::parse(line) {
        Ok(Report::Progress(fraction, Some(message))) => context.progress_message(fraction, message),
        Ok(Report::Progress(fraction, None)) => context.progress(fraction),
        Ok(Report::Heartbeat) => context.heartbeat(),
        Ok(Report::RetryAfter(after)) => said.retry_after = Some(after),
        Ok(Report::Fail(message)) => said.fail = Some(message),
        Ok(Report::FinishLater(None)) => said.instead = Some(Failure::await_completion()),
        Ok(Report::FinishLater(Some(within))) => said.instead = Some(Failure::await_completion_within(within)),
        Ok(Report::Move(queue)) => said.instead = Some(Failure::move_to(queue.as_str())),
        Err(wrong) => tracing::warn!(task = %context.id(), "the command reported what has no meaning: {wrong}"),
    }
}
