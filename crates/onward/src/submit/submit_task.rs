//! Submitting one task or several.

use std::future::Future;

use onward_store::{NewTask, Outcome, Submitted, Write};
use tracing::Instrument;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::submit::{Handle, Submission, Task, submit_described, typed};

/// Submitting. Acknowledged means durable, in the class of the store.
impl Engine {
    /// Submits a typed task. To be waited for, or not: the task runs anyhow.
    ///
    /// Nothing is written before the future is awaited; if it is dropped while the commit is under
    /// way, the task may have been submitted.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the task breaks a limit; what the store reports if it
    /// could not keep it.
    #[expect(clippy::needless_pass_by_value, reason = "a submitted task is the store's")]
    pub fn submit<T: Task>(&self, task: T) -> impl Future<Output = Result<Handle<T::Output>>> + Send + use<T> {
        submit_described(self.clone(), typed::new_task(&task).map(Box::new))
    }

    /// Submits a typed task with other than its type's settings:
    /// `engine.submit_with(task).priority(Priority::HIGH).await?`.
    #[expect(clippy::needless_pass_by_value, reason = "a submitted task is the store's")]
    pub fn submit_with<T: Task>(&self, task: T) -> Submission<T> {
        Submission::new(self.clone(), &task)
    }

    /// Submits a task. Nothing is written before the future is awaited; if it is dropped while the
    /// commit is under way, the task may have been submitted.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the task breaks a limit; what the store reports if it
    /// could not keep it.
    pub fn submit_task(&self, task: NewTask) -> impl Future<Output = Result<Submitted>> + Send {
        self.submit_boxed(Box::new(task))
    }

    /// Boxed, so that futures that wait for a commit are small: thousands may at once.
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
            match self.apply(Write::Submit(task)).await? {
                Outcome::Submitted(submitted) => Ok(submitted),
                _ => Err(Error::unexpected("a submit")),
            }
        };
        let submitted = submitted.instrument(span).await?;
        recorded.record("task", submitted.id().0);
        telemetry.submitted(submitted);
        Ok(submitted)
    }

    /// Submits several tasks, at most 100 000, in one commit: all or none. The answers are in the
    /// order of the tasks.
    ///
    /// A typed task is turned into a [`NewTask`] by [`Task::to_new_task`], or by
    /// [`Submission::into_new_task`] with other settings.
    ///
    /// Tasks may [depend](NewTask::depends_on) on each other by their positions
    /// ([`Dependency::Member`](crate::Dependency::Member)), earlier ones on later ones too: where
    /// the order does not do, they are submitted, and so numbered, in one that does.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if a task breaks a limit, or if tasks depend on each other
    /// in a circle; the text says which. Then none was kept.
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
