//! Actions on tasks.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::Client;
use crate::client::tasks::task_path;
use crate::error::Result;
use crate::http::{Request, encoded};
use crate::types::{Cancellation, Task};

#[derive(Deserialize)]
struct Effect {
    effect: String,
}

impl Client {
    /// Cancels a task, run or orchestration. A repeat after a lost response returns the same.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send); [a conflict](crate::Error::is_conflict) if it
    /// has ended in another way.
    pub async fn cancel(&self, task: &str) -> Result<Cancellation> {
        let path = task_path(task);
        match self.send(Request::post(format!("{path}/cancel")).repeatable()).await {
            Ok(reply) if reply.json::<Effect>()?.effect == "ended" => Ok(Cancellation::Ended),
            Ok(_) => Ok(Cancellation::Requested),
            // An earlier attempt of this request may have cancelled it.
            Err(error) if error.is_conflict() && self.task(task).await?.state == "cancelled" => Ok(Cancellation::Ended),
            Err(error) => Err(error),
        }
    }

    /// Makes an ended task wait again.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn retry(&self, task: &str) -> Result<Task> {
        self.act(task, "retry", &json!({})).await
    }

    /// Makes a scheduled task due now.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn run_now(&self, task: &str) -> Result<Task> {
        self.act(task, "run", &json!({})).await
    }

    /// Makes a task that does not run a dead letter.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn kill(&self, task: &str) -> Result<Task> {
        self.act(task, "kill", &json!({})).await
    }

    /// Completes the attempt that waits for an external completion. `token` names the attempt;
    /// `None` stands for the one that waits.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn complete<T: Serialize>(&self, task: &str, token: Option<&str>, result: &T) -> Result<Task> {
        self.act(task, "complete", &with_token(token, json!({ "result": result }))).await
    }

    /// Fails the attempt that waits for an external completion. `permanent` prevents a retry.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn fail(&self, task: &str, token: Option<&str>, error: &str, permanent: bool) -> Result<Task> {
        self.act(task, "fail", &with_token(token, json!({ "error": error, "permanent": permanent }))).await
    }

    async fn act(&self, task: &str, verb: &str, body: &serde_json::Value) -> Result<Task> {
        self.send(Request::post(format!("{}/{verb}", task_path(task))).json(body)?).await?.json()
    }

    /// Sends a signal to a step that waits in a run, or to an orchestration. It is not sent again
    /// after a lost connection, because it might count twice.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send); one that [is
    /// uncertain](crate::Error::is_uncertain) after a lost connection.
    pub async fn signal<T: Serialize + ?Sized>(&self, task: &str, name: &str, payload: &T) -> Result<()> {
        let path = |what| format!("/v1/{what}/{}/signals/{}", encoded(task), encoded(name));
        match self.send(Request::post(path("runs")).json(payload)?).await {
            Err(error) if error.is_not_found() => {
                self.send(Request::post(path("orchestrations")).json(payload)?).await.map(drop)
            }
            other => other.map(drop),
        }
    }
}

fn with_token(token: Option<&str>, mut body: serde_json::Value) -> serde_json::Value {
    if let Some(token) = token {
        body["token"] = token.into();
    }
    body
}
