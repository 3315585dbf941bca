//! Finishing tasks from elsewhere, moving them, and finding them by their keys.

use std::time::Duration;

use onward_store::{
    CompletionToken, Finish, Name, Outcome, Page, StoreReads, TaskFilter, TaskId, TaskRecord, TaskState, Write,
};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::handlers::{Context, Failure, Output};

impl Context {
    /// What names this attempt when it is to be finished from elsewhere
    /// ([`Failure::await_completion`]). Hand it out as text to whoever will finish it: a person, a
    /// webhook, another program. It is good as soon as it is known, and of no use after this
    /// attempt.
    #[must_use]
    pub fn completion_token(&self) -> CompletionToken {
        self.attempt.task.lease.into()
    }
}

/// Finishing attempts whose handlers have [let go of them](Failure::await_completion), from any
/// process on the store. Who knows no token may give the task's number: then whichever attempt
/// waits is meant.
impl Engine {
    /// Completes a task. By its token this also works while the handler still runs and has not let
    /// go of it.
    ///
    /// ```
    /// # use onward::{CompletionToken, Engine, Result};
    /// # async fn approve(engine: Engine, text: &str) -> Result<()> {
    /// let token: CompletionToken = text.parse()?;
    /// engine.complete(token, "approved").await
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended) for the
    /// second of two that finish it, and a [refusal](Error::refusal) if nothing waits to be
    /// finished or the token is that of an earlier attempt.
    pub async fn complete(&self, token: impl Into<CompletionToken>, output: impl Into<Output>) -> Result<()> {
        let result = output.into().0;
        self.finish(token.into(), Finish::Complete { result }).await.map(drop)
    }

    /// Fails an attempt; whether the task is tried again follows from the failure and the retry
    /// policy that held for its handler. Answers where the task stands then.
    ///
    /// # Errors
    /// As [`complete`](Self::complete); and a refusal while the handler still runs.
    pub async fn fail(&self, token: impl Into<CompletionToken>, failure: Failure) -> Result<TaskState> {
        let (error, class) = failure.into_parts();
        self.finish(token.into(), Finish::Fail { error, class }).await
    }

    /// Has the time within which an attempt must be finished begin anew, from now: the heartbeat of
    /// whoever works on it. `None`: for ever.
    ///
    /// # Errors
    /// As [`fail`](Self::fail).
    pub async fn extend(&self, token: impl Into<CompletionToken>, within: Option<Duration>) -> Result<()> {
        self.finish(token.into(), Finish::Extend { within }).await.map(drop)
    }

    async fn finish(&self, token: CompletionToken, finish: Finish) -> Result<TaskState> {
        match self.apply(Write::Finish { token, finish }).await? {
            Outcome::Finished { state } => Ok(state),
            _ => Err(Error::unexpected("a finish")),
        }
    }
}

/// What moving a task did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// It is in the other queue.
    Now,
    /// It runs: if it goes on after the attempt that runs, it does so in the other queue.
    WhenItsAttemptIsOver,
}

/// Where tasks are.
impl Engine {
    /// Moves a task to another queue, which is made if it is not there. A running one is left to
    /// its attempt, which counts in the queue where it started; a handler moves its own task with
    /// [`Failure::move_to`].
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended);
    /// [`is_invalid`](Error::is_invalid) if `queue` is no name.
    pub async fn move_to(&self, task: TaskId, queue: impl AsRef<str>) -> Result<Moved> {
        match self.apply(Write::Move { task, queue: Name::new(queue)? }).await? {
            Outcome::Moved => Ok(Moved::Now),
            Outcome::MoveRequested => Ok(Moved::WhenItsAttemptIsOver),
            _ => Err(Error::unexpected("a move")),
        }
    }

    /// The task of a kind that has a key, by which the submitter may know it: the live one, else
    /// the newest that had it, as long as history keeps it. To be waited for, or cancelled, by the
    /// number that it has.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if `kind` is no name; what the store reports if it could
    /// not be read.
    pub async fn find(&self, kind: impl AsRef<str>, key: impl Into<String>) -> Result<Option<TaskRecord>> {
        let filter = TaskFilter {
            kind: Some(Name::new(kind)?),
            key: Some(key.into()),
            with_payload: true,
            ..TaskFilter::default()
        };
        let live = TaskState::ALL.into_iter().filter(|state| !state.is_ended()).collect();
        for filter in [TaskFilter { states: live, ..filter.clone() }, filter] {
            let page = self.inner.store.tasks(filter, Page { before: None, limit: 1 }).await?;
            if let Some(found) = page.tasks.into_iter().next() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl Failure {
    /// Nothing went wrong: the handler has set something going that somebody else will finish, by
    /// the [token](Context::completion_token) of this attempt, with [`Engine::complete`] or
    /// [`Engine::fail`] in any process, or `onward task complete`. Until then the task holds
    /// neither a slot nor a lease and is neither run nor lost, however long that takes and whatever
    /// happens to this process.
    ///
    /// ```
    /// use onward::{Context, Failure};
    ///
    /// async fn approve(context: Context) -> Result<(), Failure> {
    ///     ask_somebody(&format!("approve: onward task complete {}", context.completion_token())).await;
    ///     Err(Failure::await_completion())
    /// }
    /// # async fn ask_somebody(_: &str) {}
    /// ```
    ///
    /// What the attempt has spawned is submitted in the same commit.
    #[must_use]
    pub fn await_completion() -> Self {
        Self::letting_go(None)
    }

    /// The same, for a time: if the attempt was neither finished nor [extended](Engine::extend)
    /// within it, it has failed, and the retry policy says what follows.
    #[must_use]
    pub fn await_completion_within(within: Duration) -> Self {
        Self::letting_go(Some(within))
    }

    /// This attempt ends without counting, and the task goes on in another queue, which is made if
    /// it is not there. An invalid name is a permanent failure that says so.
    pub fn move_to(queue: impl AsRef<str>) -> Self {
        match Name::new(queue) {
            Ok(queue) => Self::moving(queue),
            Err(error) => Self::permanent(error.to_string()),
        }
    }
}
