//! Bundles: tasks that were collected and are handed over as one.

use std::future::Future;
use std::sync::Arc;

use onward_store::{TaskFilter, TaskRecord};

use super::context::Context;
use super::failure::Failure;
use super::handler::{Handler, HandlerOptions};
use crate::error::Result;
use crate::submit::{Task, typed};

/// Members of a bundle.
impl Context {
    /// How many tasks were handed over as one, if this is a [bundle](crate::Aggregate); 0 for any
    /// other task. Members that were cancelled or removed before the bundle ran are counted.
    #[must_use]
    pub fn member_count(&self) -> u32 {
        self.attempt.task.members
    }

    /// The members of this bundle, with their payloads, the oldest first; none for any other task.
    /// At most [`bounds::BUNDLE`](onward_store::bounds::BUNDLE), with at most 16 MiB of payloads
    /// unless there is only one.
    ///
    /// The bundle's own [`payload`](Self::payload) is empty. Members that were cancelled or had
    /// expired before this attempt began are not among them; one that is cancelled while it runs
    /// is, and is left out of a further attempt.
    ///
    /// # Errors
    /// What the store reports if it cannot be read.
    pub async fn members(&self) -> Result<Vec<TaskRecord>> {
        if self.member_count() == 0 {
            return Ok(Vec::new());
        }
        let filter = TaskFilter { bundle: Some(self.id()), with_payload: true, ..TaskFilter::default() };
        self.all_tasks(filter).await
    }

    /// The payloads of [`members`](Self::members) as values; of a task that is no bundle, its own
    /// as the only one.
    ///
    /// # Errors
    /// What the store reports if it cannot be read; a permanent failure that names the member whose
    /// payload is not what the type expects.
    pub async fn members_as<T: Task>(&self) -> std::result::Result<Vec<T>, Failure> {
        if self.member_count() == 0 {
            return Ok(vec![typed::decode_payload(self)?]);
        }
        let members = self.members().await?;
        members.iter().map(decode).collect()
    }
}

fn decode<T: Task>(member: &TaskRecord) -> std::result::Result<T, Failure> {
    serde_json::from_slice(member.payload.as_deref().unwrap_or_default()).map_err(|error| {
        let (member, kind) = (member.id, T::KIND);
        Failure::permanent(format!("the payload of member {member} is not what the kind `{kind}` expects: {error}"))
    })
}

/// The untyped form of a typed handler of bundles.
pub(crate) fn handler<T, F, Fut>(options: HandlerOptions, function: F) -> Handler
where
    T: Task,
    F: Fn(Vec<T>, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = std::result::Result<T::Output, Failure>> + Send + 'static,
{
    let function = Arc::new(function);
    Handler::new(options, move |context: Context| {
        let function = Arc::clone(&function);
        async move {
            let members = context.members_as().await?;
            let output = function(members, context).await?;
            typed::encode_output(&output)
        }
    })
}
