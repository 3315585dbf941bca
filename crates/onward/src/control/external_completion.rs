//! Completes tasks externally, moves them, and finds them by their keys.

use std::time::Duration;

use onward_store::{
    CompletionToken, ExternalCompletion, Name, Outcome, Page, StoreReads, TaskFilter, TaskId, TaskRecord, TaskState,
    Write,
};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::handlers::{Context, Failure, Output};

impl Context {
    /// Returns the token that names this attempt for external completion
    /// ([`Failure::await_completion`]). Pass it as text to the person, webhook or program that will
    /// complete the task. It is valid from now on, and useless after this attempt.
    #[must_use]
    pub fn completion_token(&self) -> CompletionToken {
        self.attempt.task.lease.into()
    }
}

/// External completion of attempts whose handlers have [released them](Failure::await_completion),
/// from any process on the store. A caller without a token may pass the task's id, which names the
/// attempt that waits.
impl Engine {
    /// Completes a task. With its token this also works while the handler still runs and has not
    /// released it.
    ///
    /// ```
    /// # use onward::task::CompletionToken;
    /// # use onward::{Engine, Result};
    /// # async fn approve(engine: Engine, text: &str) -> Result<()> {
    /// let token: CompletionToken = text.parse()?;
    /// engine.complete(token, "approved").await
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended) for the
    /// second of two completions, and a [refusal](Error::refusal) if no attempt waits for
    /// completion or the token is that of an earlier attempt.
    pub async fn complete(&self, token: impl Into<CompletionToken>, output: impl Into<Output>) -> Result<()> {
        let result = output.into().0;
        self.complete_externally(token.into(), ExternalCompletion::Complete { result }).await.map(drop)
    }

    /// Fails an attempt. The failure and the retry policy of its handler decide whether the task is
    /// retried. Returns the state of the task after that.
    ///
    /// # Errors
    /// The errors of [`complete`](Self::complete); a refusal while the handler still runs.
    pub async fn fail(&self, token: impl Into<CompletionToken>, failure: Failure) -> Result<TaskState> {
        let (error, class) = failure.into_parts();
        self.complete_externally(token.into(), ExternalCompletion::Fail { error, class }).await
    }

    /// Restarts the time within which an attempt must be completed, from now on: the heartbeat of
    /// the process that works on it. `None` removes the limit.
    ///
    /// # Errors
    /// The errors of [`fail`](Self::fail).
    pub async fn extend(&self, token: impl Into<CompletionToken>, within: Option<Duration>) -> Result<()> {
        self.complete_externally(token.into(), ExternalCompletion::Extend { within }).await.map(drop)
    }

    async fn complete_externally(&self, token: CompletionToken, completion: ExternalCompletion) -> Result<TaskState> {
        match self.apply(Write::CompleteExternally { token, completion }).await? {
            Outcome::CompletedExternally { state } => Ok(state),
            _ => Err(Error::unexpected("an external completion")),
        }
    }
}

/// The result of moving a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The task is in the other queue.
    Now,
    /// The task runs. If it continues after this attempt, it does so in the other queue.
    AfterAttempt,
}

/// Queues of tasks.
impl Engine {
    /// Moves a task to another queue, which is created if it does not exist. A running task keeps
    /// its attempt, which counts in the queue where it started. A handler moves its own task with
    /// [`Failure::move_to`].
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended);
    /// [`is_invalid`](Error::is_invalid) if `queue` is not a name.
    pub async fn move_to(&self, task: TaskId, queue: impl AsRef<str>) -> Result<Moved> {
        match self.apply(Write::Move { task, queue: Name::new(queue)? }).await? {
            Outcome::Moved => Ok(Moved::Now),
            Outcome::MoveRequested => Ok(Moved::AfterAttempt),
            _ => Err(Error::unexpected("a move")),
        }
    }

    /// Returns the task of a kind that has a key: the live one, or else the newest that had it, as
    /// long as the history keeps it. The caller may wait for it or cancel it by its id.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if `kind` is not a name; the store's error if it could not
    /// be read.
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
    /// Ends the attempt without a failure: the task will be completed externally, by the
    /// [token](Context::completion_token) of this attempt, with [`Engine::complete`] or
    /// [`Engine::fail`] in any process, or `onward task complete`. Until then the task holds
    /// neither a slot nor a lease. It neither runs nor gets lost, however long that takes and
    /// whatever happens to this process.
    ///
    /// ```
    /// use onward::{Context, Failure};
    ///
    /// async fn approve(context: Context) -> Result<(), Failure> {
    ///     let token = context.completion_token();
    ///     ask_a_peer(&format!("approve: onward task complete {token}")).await;
    ///     Err(Failure::await_completion())
    /// }
    /// # async fn ask_a_peer(_: &str) {}
    /// ```
    ///
    /// The tasks that the attempt has spawned are submitted in the same commit.
    #[must_use]
    pub fn await_completion() -> Self {
        Self::letting_go(None)
    }

    /// Waits as [`await_completion`](Self::await_completion) does, with a limit. If the attempt was
    /// neither completed nor [extended](Engine::extend) within it, it has failed, and the retry
    /// policy decides what follows.
    #[must_use]
    pub fn await_completion_within(within: Duration) -> Self {
        Self::letting_go(Some(within))
    }

    /// Ends this attempt without counting it, and continues the task in another queue, which is
    /// created if it does not exist. An invalid or reserved name is a permanent failure.
    pub fn move_to(queue: impl AsRef<str>) -> Self {
        match Name::new(queue).and_then(|queue| queue.check_own("queue").map(|()| queue)) {
            Ok(queue) => Self::moving(queue),
            Err(error) => Self::permanent(error.to_string()),
        }
    }
}
