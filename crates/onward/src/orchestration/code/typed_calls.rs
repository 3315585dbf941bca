//! Typed updates and queries.

use std::marker::PhantomData;
use std::time::Duration;

use onward_store::TaskId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::OrchestrationContext;
use super::update::UpdateQueue;
use crate::engine::Engine;
use crate::error::Result;
use crate::handlers::Failure;
use crate::orchestration::RecordedHistory;

/// The types of a request and of its reply. Callers write the one and read the other, and the code
/// does the reverse, so a declaration owns neither.
type BothWays<Q, A> = PhantomData<fn(Q, A) -> (Q, A)>;

/// The name of an update together with the types of its payload `U` and of its reply `A`. Callers
/// and the code of the orchestration share one declaration, so both agree.
///
/// It is the same update as one that is sent and awaited by its name.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use onward::orchestration::{OrchestrationContext, UpdateCall};
/// use onward::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Account { cents: u64 }
/// # impl Task for Account {
/// #     const KIND: &'static str = "account";
/// #     const ORCHESTRATION: bool = true;
/// #     type Output = u64;
/// # }
///
/// /// Withdraws an amount in cents and returns the rest.
/// const WITHDRAW: UpdateCall<u64, u64> = UpdateCall::new("withdraw");
///
/// let engine = Engine::builder().memory().open().await?;
/// engine.orchestrate(|account: Account, context: OrchestrationContext| async move {
///     let update = WITHDRAW.queue(&context)?.next().await;
///     let rest = account.cents - *update.payload();
///     update.accept(&rest)?;
///     Ok(rest)
/// });
///
/// let account = engine.submit(Account { cents: 500 }).await?;
/// let withdrawal = WITHDRAW.send(&engine, account.id(), &200);
/// let (rest, run) = tokio::join!(withdrawal, engine.run_until_idle());
/// run?;
/// assert_eq!(rest?, 300);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct UpdateCall<U, A> {
    name: &'static str,
    types: BothWays<U, A>,
}

/// The name of a query together with the types of its question `Q` and of its answer `A`. Callers
/// and the code of the orchestration share one declaration, so both agree.
///
/// It is the same query as one that is asked and registered by its name.
///
/// ```
/// use onward::orchestration::{OrchestrationContext, Query};
/// use onward::prelude::*;
///
/// /// The number of parcels in a state.
/// const PARCELS: Query<String, u32> = Query::new("parcels");
///
/// async fn depot(context: OrchestrationContext) -> Result<(), Failure> {
///     PARCELS.answer(&context, |state| Ok(if state == "sent" { 3 } else { 0 }));
///     context.event::<()>("closed")?.await
/// }
///
/// async fn sent(engine: &Engine, depot: onward::TaskId) -> onward::Result<u32> {
///     PARCELS.ask(engine, depot, &"sent".to_owned()).await
/// }
/// ```
#[derive(Debug)]
pub struct Query<Q, A> {
    name: &'static str,
    types: BothWays<Q, A>,
}

impl<U, A> UpdateCall<U, A> {
    /// Declares an update. If `update.` and the name are not a [`Name`](crate::Name), sending and
    /// awaiting it are errors.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, types: PhantomData }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// Methods for callers.
impl<U: Serialize + Sync, A: DeserializeOwned> UpdateCall<U, A> {
    /// Sends the update to an orchestration and waits for the reply, as [`Engine::update`] does.
    ///
    /// # Errors
    /// As [`Engine::update`].
    pub async fn send(&self, engine: &Engine, orchestration: TaskId, payload: &U) -> Result<A> {
        engine.update(orchestration, self.name, payload).await
    }

    /// Sends the update to an orchestration and waits for the reply at most for `timeout`, as
    /// [`Engine::update_within`] does.
    ///
    /// # Errors
    /// As [`Engine::update_within`].
    pub async fn send_within(
        &self,
        engine: &Engine,
        orchestration: TaskId,
        payload: &U,
        timeout: Duration,
    ) -> Result<A> {
        engine.update_within(orchestration, self.name, payload, timeout).await
    }
}

/// Methods for the code of an orchestration.
impl<U: DeserializeOwned, A: Serialize> UpdateCall<U, A> {
    /// Returns the updates that are sent, to be taken one after the other, as
    /// [`OrchestrationContext::updates`] does. Their replies have the declared type.
    ///
    /// # Errors
    /// An error if `update.` and the name are not a [`Name`](crate::Name).
    pub fn queue(&self, context: &OrchestrationContext) -> Result<UpdateQueue<U, A>> {
        context.declared_updates(self.name)
    }
}

impl<Q, A> Query<Q, A> {
    /// Declares a query. A name that is not a [`Name`](crate::Name) is an error when the query is
    /// asked.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, types: PhantomData }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// Methods for callers.
impl<Q: Serialize + Sync, A: DeserializeOwned> Query<Q, A> {
    /// Asks the code of an orchestration, as [`Engine::query`] does.
    ///
    /// # Errors
    /// As [`Engine::query`].
    pub async fn ask(&self, engine: &Engine, orchestration: TaskId, question: &Q) -> Result<A> {
        engine.query(orchestration, self.name, question).await
    }

    /// Asks the code at the end of a recorded history, as [`Engine::query_history`] does.
    ///
    /// # Errors
    /// As [`Engine::query_history`].
    pub fn ask_history(&self, engine: &Engine, history: &RecordedHistory, question: &Q) -> Result<A> {
        engine.query_history(history, self.name, question)
    }
}

/// Methods for the code of an orchestration.
impl<Q: DeserializeOwned, A: Serialize> Query<Q, A> {
    /// Registers the function that answers, as [`OrchestrationContext::on_query`] does.
    pub fn answer<F>(&self, context: &OrchestrationContext, answer: F)
    where
        F: Fn(Q) -> std::result::Result<A, Failure> + Send + Sync + 'static,
    {
        context.on_query(self.name, answer);
    }
}
