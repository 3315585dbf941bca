//! Typed signals.

use std::marker::PhantomData;
use std::time::Duration;

use onward_store::TaskId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::OrchestrationContext;
use super::operation::{EventQueue, Signalled};
use crate::engine::Engine;
use crate::error::Result;
use crate::submit::{Handle, Task};

/// The name of a signal together with the type of its payload. Senders and receivers share one
/// declaration, so both agree.
///
/// It is the same signal as one that is sent and awaited by its name.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use onward::orchestration::{OrchestrationContext, Signal};
/// use onward::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Order { id: String }
/// # impl Task for Order {
/// #     const KIND: &'static str = "order";
/// #     const ORCHESTRATION: bool = true;
/// #     type Output = u64;
/// #     fn key(&self) -> Option<String> { Some(self.id.clone()) }
/// # }
///
/// /// The amount that was paid, in cents.
/// const PAID: Signal<u64> = Signal::new("paid");
///
/// let engine = Engine::builder().memory().open().await?;
/// engine.orchestrate(|_: Order, context: OrchestrationContext| async move {
///     PAID.next(&context)?.await
/// });
///
/// let order = PAID.send_or_start(&engine, Order { id: "A-17".into() }, &1999).await?;
/// engine.run_until_idle().await?;
/// assert_eq!(order.wait().await?, 1999);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Signal<T> {
    name: &'static str,
    payload: PhantomData<fn(T) -> T>,
}

impl<T> Signal<T> {
    /// Declares a signal. A name that is not a [`Name`](crate::Name) is an error when the signal is
    /// sent or awaited.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, payload: PhantomData }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// Methods for senders.
impl<T: Serialize + Sync> Signal<T> {
    /// Sends the signal to an orchestration, as [`Engine::signal`] does.
    ///
    /// # Errors
    /// As [`Engine::signal`].
    pub async fn send(&self, engine: &Engine, orchestration: TaskId, payload: &T) -> Result<()> {
        engine.signal(orchestration, self.name, payload).await
    }

    /// Sends the signal to the active orchestration of a kind that has a key, as
    /// [`Engine::signal_key`] does.
    ///
    /// # Errors
    /// As [`Engine::signal_key`].
    pub async fn send_to_key(&self, engine: &Engine, kind: &str, key: &str, payload: &T) -> Result<()> {
        engine.signal_key(kind, key, self.name, payload).await
    }

    /// Sends the signal to the active orchestration that has the key of `start`, and starts it
    /// first if there is none, as [`Engine::signal_or_start`] does.
    ///
    /// # Errors
    /// As [`Engine::signal_or_start`].
    pub async fn send_or_start<O: Task + Sync>(
        &self,
        engine: &Engine,
        start: O,
        payload: &T,
    ) -> Result<Handle<O::Output>> {
        engine.signal_or_start(start, self.name, payload).await
    }

    /// Sends the signal to the active orchestration of a kind that has a key, or keeps it if there
    /// is none, as [`Engine::signal_or_keep`] does.
    ///
    /// # Errors
    /// As [`Engine::signal_or_keep`].
    pub async fn send_or_keep(&self, engine: &Engine, to: (&str, &str), keep_for: Duration, payload: &T) -> Result<()> {
        engine.signal_or_keep(to, keep_for, self.name, payload).await
    }
}

/// Methods for the code of an orchestration.
impl<T: DeserializeOwned> Signal<T> {
    /// Waits for the next signal, as [`OrchestrationContext::event`] does.
    ///
    /// # Errors
    /// An error if the name is not a [`Name`](crate::Name).
    pub fn next(&self, context: &OrchestrationContext) -> Result<Signalled<T>> {
        context.event(self.name)
    }

    /// Returns the signals that are sent, to be taken one after the other, as
    /// [`OrchestrationContext::queue`] does.
    ///
    /// # Errors
    /// An error if the name is not a [`Name`](crate::Name).
    pub fn queue(&self, context: &OrchestrationContext) -> Result<EventQueue<T>> {
        context.queue(self.name)
    }
}
