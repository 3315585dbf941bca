//! The engine's handler, which runs the command of a line.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward::{Context, Failure};
use onward_store::{Store, StoreReads, TaskId};

use super::halt::FailureCount;
use super::identity::line_number;
use super::pacer::Pacer;
use super::record;
use super::template::Template;
use crate::process::{End, Finished, Invocation, Limits, NotRun, Runner};

/// The delay after which a stopped line is due again. It is not zero, so that this process does not
/// claim the line again.
const AFTER_STOP: Duration = Duration::from_millis(1);

/// The delay after which a line is due again if the outcome of its command is unknown.
const AFTER_LOSS: Duration = Duration::from_secs(1);

/// The shared state of all lines of a run.
#[derive(Debug)]
pub(super) struct LineWork {
    pub(super) store: Arc<dyn Store>,
    pub(super) template: Template,
    pub(super) limits: Limits,
    pub(super) pacer: Option<Pacer>,
    pub(super) runner: Runner,
    pub(super) failures: Arc<FailureCount>,
}

impl LineWork {
    /// Runs one attempt.
    pub(super) async fn attempt(self: Arc<Self>, context: Context) -> Result<Bytes, Failure> {
        let stop = context.cancelled();
        if let Some(pacer) = &self.pacer {
            tokio::select! {
                () = pacer.wait() => {}
                () = stop.cancelled() => return Err(stopped()),
            }
        }
        let invocation = self.invocation(&context).await?;
        match self.runner.run(invocation, self.limits, &stop).await {
            Ok(finished) => outcome_of(&finished),
            Err(why) => Err(not_run(&self.template, why)),
        }
    }

    async fn invocation(&self, context: &Context) -> Result<Invocation, Failure> {
        let environment = vec![
            ("ONWARD_TASK_ID".into(), OsString::from(context.id().to_string())),
            ("ONWARD_ATTEMPT".into(), context.attempt().to_string().into()),
        ];
        let number = if self.template.has_number() { self.number(context.id()).await? } else { String::new() };
        Ok(self.template.fill(context.payload(), &number, environment))
    }

    /// Returns the number of a line, which is in the key of its task. A handler does not receive
    /// the key, and another process may have submitted the line.
    async fn number(&self, task: TaskId) -> Result<String, Failure> {
        let unknown =
            |why: String| Failure::not_counted(format!("the number of the line is unknown: {why}"), AFTER_LOSS);
        let record = self.store.task(task).await.map_err(|error| unknown(error.to_string()))?;
        let key = record.and_then(|record| record.key);
        let number = key.as_deref().and_then(line_number).ok_or_else(|| unknown("its task has no key".to_owned()))?;
        Ok(number.to_owned())
    }
}

fn outcome_of(finished: &Finished) -> Result<Bytes, Failure> {
    match finished.end {
        End::Exited(0) => Ok(record::result(finished)),
        End::Stopped => Err(stopped()),
        End::Exited(_) | End::Killed(_) | End::TimedOut => Err(Failure::retryable(record::error(finished))),
    }
}

fn stopped() -> Failure {
    Failure::not_counted(record::how(End::Stopped), AFTER_STOP)
}

/// Returns the failure of a command that did not run. The runner waits out faults of this process,
/// so the other faults belong to the line.
fn not_run(template: &Template, why: NotRun) -> Failure {
    match why {
        NotRun::Stopped => stopped(),
        NotRun::Refused(error) => {
            let program = template.program().display();
            Failure::permanent(format!("cannot start `{program}` with this line: {error}"))
        }
        NotRun::Lost(error) => {
            let program = template.program().display();
            Failure::not_counted(format!("the end of `{program}` is unknown: {error}"), AFTER_LOSS)
        }
    }
}
