//! Orchestrations, activities and handlers by the names of their kinds, with JSON in and out. They
//! serve programs that learn at run time which kinds exist, and steps in another language.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use onward_store::{NewTask, OnDuplicate, UniqueKey};
use serde_json::Value;

use crate::engine::Engine;
use crate::error::Result;
use crate::handlers::{Context, Failure, Output};
use crate::orchestration::code::{Activity, OrchestrationContext, json};
use crate::orchestration::code_table::{OrchestrationOptions, json_payload};
use crate::orchestration::remote_code::RemoteCode;
use crate::submit::{Handle, Waiters};

/// Registration by name, with JSON.
impl Engine {
    /// Registers the code of a kind of orchestrations by its name. The code gets the payload as
    /// JSON, and its result is kept as JSON. An empty payload is `null`. An invalid registration (a
    /// bad name, a second one of the kind and version) is an error of the run.
    pub fn orchestrate_json<F, Fut>(&self, kind: &str, options: OrchestrationOptions, function: F) -> &Self
    where
        F: Fn(Value, OrchestrationContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, Failure>> + Send + 'static,
    {
        self.inner.register_orchestration_json(kind, options, function);
        self
    }

    /// Registers the code of a kind of orchestrations that runs in another process. It takes effect
    /// from the next run. An invalid registration (a bad name, a kind that has code already) is an
    /// error of the run.
    pub fn orchestrate_remotely(&self, kind: &str, code: Arc<dyn RemoteCode>) -> &Self {
        self.inner.register_remote_orchestration(kind, code);
        self
    }

    /// Registers the handler of a kind, or of a [pattern](Self::handle), that gets the payload as
    /// JSON and returns JSON.
    pub fn handle_json<F, Fut>(&self, kind: impl AsRef<str>, handler: F) -> &Self
    where
        F: Fn(Value, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, Failure>> + Send + 'static,
    {
        self.handle(kind, move |context: Context| {
            let answer = json_payload(context.payload(), context.kind()).map(|payload| handler(payload, context));
            async move { Output::json(&answer?.await?) }
        })
    }

    /// Starts an orchestration of a kind by its name. With a key it starts only if no active one
    /// has the key.
    ///
    /// # Errors
    /// [`is_invalid`](crate::Error::is_invalid) if the kind is not a [`Name`](crate::Name) or the
    /// payload is too large; the store's error if it could not keep the orchestration.
    pub async fn start_json(&self, kind: &str, key: Option<&str>, payload: &Value) -> Result<Handle<Value>> {
        let unique =
            key.map(|key| UniqueKey { key: key.to_owned(), on_duplicate: OnDuplicate::Skip, keep_for: Duration::ZERO });
        let new = NewTask { orchestration: true, unique, ..new_task(kind, payload)? };
        let position = Waiters::position(&self.inner);
        let submitted = self.submit_task(new).await?;
        Ok(Handle::new(self.clone(), submitted, position))
    }
}

/// Activities by name, with JSON.
impl OrchestrationContext {
    /// Returns a task of a kind to be submitted and awaited, with JSON in and out. An invalid kind
    /// is reported when the activity is awaited.
    pub fn activity_by_name(&self, kind: &str, payload: &Value) -> Activity<Value> {
        self.activity_of(new_task(kind, payload))
    }

    /// Returns another orchestration of a kind to be started and awaited, with JSON in and out.
    pub fn orchestration_by_name(&self, kind: &str, payload: &Value) -> Activity<Value> {
        self.activity_of(new_task(kind, payload).map(|task| NewTask { orchestration: true, ..task }))
    }
}

fn new_task(kind: &str, payload: &Value) -> Result<NewTask> {
    Ok(NewTask { payload: json("payload", payload)?, ..NewTask::new(kind)? })
}
