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

/// A task as a type. Its fields are the payload (as JSON), and its [`Output`](Self::Output) is the
/// result.
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
    /// The name that selects the handler. Stored tasks carry it, so do not change it once it is in
    /// use.
    const KIND: &'static str;

    /// True if the task is an [orchestration](crate::orchestration). Its code is then registered
    /// with [`orchestrate`](crate::Engine::orchestrate), and every program that submits it must set
    /// this too. Default: false.
    const ORCHESTRATION: bool = false;

    /// The type that the handler returns.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// Returns the queue of the task. Default: `default`.
    fn queue(&self) -> &str {
        "default"
    }

    /// Returns the group with whose tasks the task shares limits. Default: none.
    fn group(&self) -> Option<String> {
        None
    }

    /// Returns the affinity key: the task prefers the worker that last ran a task with the same
    /// key. Default: none.
    fn affinity(&self) -> Option<String> {
        None
    }

    /// Returns a key that makes the task unique among the active tasks of its kind. Default: none.
    fn key(&self) -> Option<String> {
        None
    }

    /// Returns how long the key stays taken after the task has ended, so that the same work runs
    /// once in that time. Default: the key is free when the task ends.
    fn keep_key_for(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns what happens when the key is taken. Default: the existing task is kept.
    fn on_duplicate(&self) -> OnDuplicate {
        OnDuplicate::Skip
    }

    /// Returns the priority. Default: 128.
    fn priority(&self) -> Priority {
        Priority::NORMAL
    }

    /// Returns the timeout of one attempt. Default: the timeout of the handler or the engine.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Returns how long an attempt may run without a heartbeat of its handler
    /// ([`Context::heartbeat`]). Default: the handler's heartbeat timeout.
    fn heartbeat_timeout(&self) -> Option<Duration> {
        None
    }

    /// Returns how long the task is kept after its end, with its result and errors, however it
    /// ended. Default: until an engine or a prune forgets it.
    fn retention(&self) -> Option<Duration> {
        None
    }

    /// Returns the tags by which the task can be found. Default: none.
    fn tags(&self) -> Tags {
        Tags::new()
    }

    /// Returns how the task is collected with others into a batch, for a handler of
    /// [batches](crate::Engine::register_batches). Default: not collected.
    fn aggregate(&self) -> Option<Aggregate> {
        None
    }

    /// Returns the retry policy. Default: the policy of the handler, the queue or the engine.
    fn retry(&self) -> Option<RetryPolicy> {
        None
    }

    /// Returns the untyped task, with the kind, key, group and every other setting of its type. Use
    /// it for [`submit_all`](crate::Engine::submit_all), for `submit_in` of a store, and to change
    /// single fields. Do not override it: the engine does not call it.
    ///
    /// [`Submission::into_new_task`](crate::Submission::into_new_task) returns an untyped task with
    /// other settings than its type's.
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
    /// engine.submit_all(tasks).await?; // one commit, all or nothing
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the kind, queue, group or affinity key is not a
    /// [`Name`](crate::Name), or if the fields cannot be written as JSON.
    fn to_new_task(&self) -> Result<NewTask> {
        new_task(self)
    }
}

/// Returns the untyped form of a typed task.
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

/// Returns the untyped form of a typed handler.
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
    if context.item_count() > 0 {
        let (items, kind) = (context.item_count(), T::KIND);
        return Err(Failure::permanent(format!(
            "it is a batch of {items} tasks of the kind `{kind}`; register the handler with `register_batches`"
        )));
    }
    serde_json::from_slice(context.payload())
        .map_err(|error| Failure::permanent(format!("the payload does not match the kind `{}`: {error}", T::KIND)))
}

pub(crate) fn encode_output<T: Serialize>(output: &T) -> Result<Output, Failure> {
    let bytes = json::encode(output)
        .map_err(|error| Failure::permanent(format!("the result cannot be written as JSON: {error}")))?;
    Ok(if *bytes == *NULL { Output::NONE } else { bytes.into() })
}

/// Returns the bytes of [`encode_output`].
pub(crate) fn encode_result<T: Serialize>(output: &T) -> Result<Option<Bytes>, Failure> {
    Ok(encode_output(output)?.0)
}

/// `()` and `None` as JSON. They are stored as no result.
const NULL: &[u8] = b"null";

pub(crate) fn decode_output<T: DeserializeOwned>(result: Option<&Bytes>) -> serde_json::Result<T> {
    serde_json::from_slice(result.map_or(NULL, |bytes| bytes))
}
