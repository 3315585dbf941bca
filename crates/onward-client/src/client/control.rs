//! Queues, limits and schedules.

use serde_json::json;

use crate::client::{Client, Pages};
use crate::error::Result;
use crate::http::{Request, Response, encoded};
use crate::types::{Limit, LimitChange, Queue, Schedule, Tagged};

fn tagged<T: serde::de::DeserializeOwned>(response: &Response) -> Result<Tagged<T>> {
    Ok(Tagged { value: response.json()?, etag: response.etag().map(str::to_owned) })
}

fn conditional(request: Request, etag: Option<&str>) -> Result<Request> {
    etag.map_or_else(|| Ok(request.clone()), |etag| request.clone().if_match(etag))
}

impl Client {
    /// Lists the queues, by name.
    #[must_use]
    pub fn queues(&self) -> Pages<Queue> {
        self.pages("/v1/queues")
    }

    /// Returns a queue.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn queue(&self, queue: &str) -> Result<Queue> {
        self.get(format!("/v1/queues/{}", encoded(queue))).await
    }

    /// Pauses a queue, until it is resumed.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn pause_queue(&self, queue: &str) -> Result<Queue> {
        let request = Request::post(format!("/v1/queues/{}/pause", encoded(queue))).repeatable();
        self.send(request.json(&json!({}))?).await?.json()
    }

    /// Resumes a queue.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn resume_queue(&self, queue: &str) -> Result<Queue> {
        let request = Request::post(format!("/v1/queues/{}/resume", encoded(queue))).repeatable();
        self.send(request).await?.json()
    }

    /// Lists the limits and their usage.
    #[must_use]
    pub fn limits(&self) -> Pages<Limit> {
        self.pages("/v1/limits")
    }

    /// Returns the limit of a scope: `all`, `queue:NAME`, `kind:NAME`, `group:NAME` or
    /// `groups:PREFIX`.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn limit(&self, scope: &str) -> Result<Tagged<Limit>> {
        tagged(&self.send(Request::get(limit_path(scope))).await?)
    }

    /// Sets the limit of a scope. With the entity tag of an earlier read it fails [as a
    /// conflict](crate::Error::is_conflict) if another client has changed the limit since.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn set_limit(&self, scope: &str, limit: LimitChange, etag: Option<&str>) -> Result<Tagged<Limit>> {
        let request = Request::put(limit_path(scope)).json(&limit)?;
        tagged(&self.send(conditional(request, etag)?).await?)
    }

    /// Removes the limit of a scope, with an entity tag as in [`set_limit`](Self::set_limit).
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn remove_limit(&self, scope: &str, etag: Option<&str>) -> Result<()> {
        self.send(conditional(Request::delete(limit_path(scope)), etag)?).await.map(drop)
    }

    /// Lists the schedules.
    #[must_use]
    pub fn schedules(&self) -> Pages<Schedule> {
        self.pages("/v1/schedules")
    }

    /// Returns a schedule.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn schedule(&self, name: &str) -> Result<Tagged<Schedule>> {
        tagged(&self.send(Request::get(format!("/v1/schedules/{}", encoded(name)))).await?)
    }
}

fn limit_path(scope: &str) -> String {
    format!("/v1/limits/{}", encoded(scope))
}
