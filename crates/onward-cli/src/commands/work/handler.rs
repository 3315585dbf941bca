//! Running a task's command, as a handler of the engine.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use onward::{Context, Failure};

use super::mailbox::Mailbox;
use super::members;
use super::report::Report;
use super::verdict::{Said, judge};
use crate::process::{Finished, Invocation, Limits, Runner};

/// What every task of a worker needs.
#[derive(Debug)]
pub(super) struct TaskWork {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) limits: Limits,
    pub(super) runner: Runner,
    pub(super) mailboxes: PathBuf,
}

impl TaskWork {
    /// Runs one attempt.
    pub(super) async fn attempt(self: Arc<Self>, context: Context) -> Result<Bytes, Failure> {
        let mailbox = Mailbox::open(&self.mailboxes, &format!("task-{}-{}", context.id(), context.attempt()))?;
        let stdin = members::stdin(&context).await?;
        let (finished, said) = self.run(&context, mailbox, stdin).await?;
        judge(finished, said, self.limits.capture)
    }

    async fn run(&self, context: &Context, mut mailbox: Mailbox, stdin: Bytes) -> io::Result<(Finished, Said)> {
        let (stop, mut said) = (context.cancelled(), Said::default());
        let running = self.runner.run(self.invocation(context, &mailbox, stdin), self.limits, &stop);
        tokio::pin!(running);
        let finished = loop {
            tokio::select! {
                finished = &mut running => break finished?,
                line = mailbox.next() => take(context, &mut said, &line?),
            }
        };
        mailbox.rest().iter().for_each(|line| take(context, &mut said, line));
        Ok((finished, said))
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
