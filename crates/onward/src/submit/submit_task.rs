//! Submits one task or several.

use std::future::Future;

use onward_store::{NewTask, Outcome, Submitted, Write};
use tracing::Instrument;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::submit::{Handle, Submission, Task, submit_described, typed};

/// Submitting. An acknowledged submit is durable, at the store's durability level.
impl Engine {
    /// Submits a typed task and returns a handle that may wait for it. The task runs whether or not
    /// the caller waits.
    ///
    /// Nothing is written before the future is awaited. If the future is dropped during the commit,
    /// the task may have been submitted.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the task breaks a limit; the store's error if it could
    /// not keep the task.
    #[expect(clippy::needless_pass_by_value, reason = "a submitted task is the store's")]
    pub fn submit<T: Task>(&self, task: T) -> impl Future<Output = Result<Handle<T::Output>>> + Send + use<T> {
        submit_described(self.clone(), typed::new_task(&task).map(Box::new))
    }

    /// Submits a typed task with other settings than its type's:
    /// `engine.submit_with(task).priority(Priority::HIGH).await?`.
    #[expect(clippy::needless_pass_by_value, reason = "a submitted task is the store's")]
    pub fn submit_with<T: Task>(&self, task: T) -> Submission<T> {
        Submission::new(self.clone(), &task)
    }

    /// Submits a task. Nothing is written before the future is awaited. If the future is dropped
    /// during the commit, the task may have been submitted.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the task breaks a limit; the store's error if it could
    /// not keep the task.
    pub fn submit_task(&self, task: NewTask) -> impl Future<Output = Result<Submitted>> + Send {
        self.submit_boxed(Box::new(task))
    }

    /// Submits a boxed task. The box keeps futures that wait for a commit small: thousands may
    /// exist at once.
    pub(crate) async fn submit_boxed(&self, task: Box<NewTask>) -> Result<Submitted> {
        task.kind.check_own("kind")?;
        let telemetry = self.inner.telemetry.kind(&task.kind);
        let span = tracing::info_span!(
            "submit",
            task = tracing::field::Empty,
            kind = task.kind.as_str(),
            queue = task.queue.as_str()
        );
        let recorded = span.clone();
        let submitted = async {
            match self.apply_submit(task).await? {
                Outcome::Submitted(submitted) => Ok(submitted),
                _ => Err(Error::unexpected("a submit")),
            }
        };
        let submitted = submitted.instrument(span).await?;
        recorded.record("task", submitted.id().0);
        telemetry.submitted(submitted);
        Ok(submitted)
    }

    /// Submits several tasks, at most 100 000, in one commit: all or none. The results are in the
    /// order of the tasks.
    ///
    /// [`Task::to_new_task`] turns a typed task into a [`NewTask`], and
    /// [`Submission::into_new_task`] does so with other settings.
    ///
    /// Tasks may [depend](NewTask::depends_on) on each other by their positions
    /// ([`Dependency::Position`](crate::task::Dependency::Position)), also an earlier one on a
    /// later one. If a task comes before one that it depends on, the tasks are submitted, and
    /// numbered, in an order in which it does not.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if a task breaks a limit or if tasks depend on each other
    /// in a cycle; the text names the task. No task was kept then.
    pub async fn submit_all(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>> {
        tasks.iter().try_for_each(|task| task.kind.check_own("kind"))?;
        if !onward_store::rules::dependencies::is_in_order(&tasks) {
            return crate::submit::submit_in_order(self, tasks).await;
        }
        let kinds: Vec<_> = tasks.iter().map(|task| self.inner.telemetry.kind(&task.kind)).collect();
        let unknown = tracing::field::Empty;
        let span = tracing::info_span!("submit_all", tasks = tasks.len(), first = unknown, last = unknown);
        let recorded = span.clone();
        let writes = tasks.into_iter().map(|task| Write::Submit(Box::new(task))).collect();
        let Outcome::All(outcomes) = self.apply(Write::All(writes)).instrument(span).await? else {
            return Err(Error::unexpected("several submits"));
        };
        let submitted = outcomes.into_iter().map(|outcome| match outcome {
            Outcome::Submitted(submitted) => Ok(submitted),
            _ => Err(Error::unexpected("a submit")),
        });
        let submitted = submitted.collect::<Result<Vec<_>>>()?;
        if let [first, ..] = submitted[..]
            && let Some(last) = submitted.last()
        {
            recorded.record("first", first.id().0).record("last", last.id().0);
        }
        kinds.iter().zip(&submitted).for_each(|(kind, submitted)| kind.submitted(*submitted));
        Ok(submitted)
    }
}
