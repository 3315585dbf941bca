//! Tasks as Rust types.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use onward_store::rules::retry::RetryPolicy;
use onward_store::{Aggregate, NewTask, OnDuplicate, Priority, Tags, UniqueKey};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::handlers::{Context, Failure, Handler, HandlerOptions, Output};
use crate::json;

/// A task as a type: its fields are the payload (as JSON), its [`Output`](Self::Output) the result.
///
/// ```
/// use onward::Task;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Thumbnail { image: String, width: u32 }
///
/// impl Task for Thumbnail {
///     const KIND: &'static str = "thumbnail";
///     type Output = String;
///
///     fn key(&self) -> Option<String> {
///         Some(format!("{}@{}", self.image, self.width))
///     }
/// }
/// ```
pub trait Task: Serialize + DeserializeOwned + Send + 'static {
    /// The name that selects the handler. Tasks kept in a store bear it, so do not change it once
    /// in use.
    const KIND: &'static str;

    /// Whether it is an [orchestration](crate::orchestration): then its code is registered with
    /// [`orchestrate`](crate::Engine::orchestrate), and everybody who submits it must say so.
    /// Default: no.
    const ORCHESTRATION: bool = false;

    /// What the handler answers.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// The queue it waits in. Default: `default`.
    fn queue(&self) -> &str {
        "default"
    }

    /// The group with whose tasks it shares limits. Default: none.
    fn group(&self) -> Option<String> {
        None
    }

    /// The series that it belongs to: it prefers the worker that ran one of the same series last.
    /// Default: none.
    fn affinity(&self) -> Option<String> {
        None
    }

    /// A key that makes it unique among the active tasks of its kind. Default: none.
    fn key(&self) -> Option<String> {
        None
    }

    /// For how long the key stays taken after the task has ended, so that the same is done once in
    /// that time. Default: no longer than the task is active.
    fn keep_key_for(&self) -> Duration {
        Duration::ZERO
    }

    /// What to do when the key is taken. Default: keep the existing task.
    fn on_duplicate(&self) -> OnDuplicate {
        OnDuplicate::Skip
    }

    /// How urgent it is. Default: 128.
    fn priority(&self) -> Priority {
        Priority::NORMAL
    }

    /// How long one attempt may take. Default: as its handler or the engine says.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// How long an attempt may go on without a sign of life of its handler
    /// ([`Context::heartbeat`]). Default: as its handler says.
    fn heartbeat_timeout(&self) -> Option<Duration> {
        None
    }

    /// How long it is kept after its end, with its result and its errors, however it ended.
    /// Default: for as long as engines and prunes leave it.
    fn retention(&self) -> Option<Duration> {
        None
    }

    /// What it can be found by. Default: none.
    fn tags(&self) -> Tags {
        Tags::new()
    }

    /// Whether it is collected with others and handed over with them as one, to a handler of
    /// [bundles](crate::Engine::register_bundles). Default: no.
    fn aggregate(&self) -> Option<Aggregate> {
        None
    }

    /// How it is tried again. Default: as its handler, its queue or the engine says.
    fn retry(&self) -> Option<RetryPolicy> {
        None
    }

    /// Returns the task as bytes, with the kind, key, group and all else that its type says: for
    /// [`submit_all`](crate::Engine::submit_all), for `submit_in` of a store, and to change single
    /// fields. Not to be overridden: the engine does not call it.
    ///
    /// [`Submission::into_new_task`](crate::Submission::into_new_task) returns one with other
    /// settings than its type's.
    ///
    /// ```
    /// # use onward::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail { to: String }
    ///
    /// impl Task for Mail {
    ///     const KIND: &'static str = "mail";
    ///     type Output = ();
    ///
    ///     fn group(&self) -> Option<String> {
    ///         self.to.split_once('@').map(|(_, host)| host.to_owned())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().memory().open().await?;
    /// let mails = ["ada@example.org", "alan@example.net"].map(|to| Mail { to: to.to_owned() });
    /// let tasks: Vec<NewTask> = mails.iter().map(Task::to_new_task).collect::<Result<_, _>>()?;
    /// engine.submit_all(tasks).await?;                                     // one commit, all or nothing
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the kind, queue, group or affinity key is no
    /// [`Name`](crate::Name), or the fields cannot be written as JSON.
    fn to_new_task(&self) -> Result<NewTask> {
        new_task(self)
    }
}

/// The untyped form of a typed task.
pub(crate) fn new_task<T: Task>(task: &T) -> Result<NewTask> {
    let mut new = NewTask::new(T::KIND)?;
    new.queue = onward_store::Name::new(task.queue())?;
    new.group = task.group().map(onward_store::Name::new).transpose()?;
    new.affinity = task.affinity().map(onward_store::Name::new).transpose()?;
    new.payload = json::encode(task)
        .map_err(|error| Error::invalid(format!("a task of kind `{}` cannot be written as JSON: {error}", T::KIND)))?;
    new.priority = task.priority();
    let (on_duplicate, keep_for) = (task.on_duplicate(), task.keep_key_for());
    new.unique = task.key().map(|key| UniqueKey { key, on_duplicate, keep_for });
    new.timeout = task.timeout();
    new.heartbeat_timeout = task.heartbeat_timeout();
    new.retention = task.retention();
    new.retry = task.retry();
    new.tags = task.tags();
    new.aggregate = task.aggregate();
    new.orchestration = T::ORCHESTRATION;
    Ok(new)
}

/// The untyped form of a typed handler.
pub(crate) fn handler<T, F, Fut>(options: HandlerOptions, function: F) -> Handler
where
    T: Task,
    F: Fn(T, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
{
    let function = std::sync::Arc::new(function);
    Handler::new(options, move |context: Context| {
        let function = std::sync::Arc::clone(&function);
        async move {
            let task = decode_payload(&context)?;
            let output = function(task, context).await?;
            encode_output(&output)
        }
    })
}

pub(crate) fn decode_payload<T: Task>(context: &Context) -> Result<T, Failure> {
    if context.member_count() > 0 {
        let (members, kind) = (context.member_count(), T::KIND);
        return Err(Failure::permanent(format!(
            "it is a bundle of {members} tasks of the kind `{kind}`; register the handler with `register_bundles`"
        )));
    }
    serde_json::from_slice(context.payload())
        .map_err(|error| Failure::permanent(format!("the payload is not what the kind `{}` expects: {error}", T::KIND)))
}

pub(crate) fn encode_output<T: Serialize>(output: &T) -> Result<Output, Failure> {
    let bytes = json::encode(output)
        .map_err(|error| Failure::permanent(format!("the result cannot be written as JSON: {error}")))?;
    Ok(if *bytes == *NULL { Output::NONE } else { bytes.into() })
}

/// The same as bytes.
pub(crate) fn encode_result<T: Serialize>(output: &T) -> Result<Option<Bytes>, Failure> {
    Ok(encode_output(output)?.0)
}

/// `()` and `None` as JSON: kept as no result at all.
const NULL: &[u8] = b"null";

pub(crate) fn decode_output<T: DeserializeOwned>(result: Option<&Bytes>) -> serde_json::Result<T> {
    serde_json::from_slice(result.map_or(NULL, |bytes| bytes))
}
