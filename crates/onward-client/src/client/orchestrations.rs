//! Orchestrations.

use serde::Serialize;

use crate::client::Client;
use crate::error::Result;
use crate::http::encoded;
use crate::types::{Orchestration, Submitted};

#[derive(Serialize)]
struct Start<'s, T: ?Sized> {
    kind: &'s str,
    payload: &'s T,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'s str>,
}

impl Client {
    /// Starts an orchestration. `key` makes it unique among the active ones of its kind.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn start_orchestration<T: Serialize + ?Sized>(
        &self,
        kind: &str,
        payload: &T,
        key: Option<&str>,
    ) -> Result<Submitted> {
        self.create("/v1/orchestrations".to_owned(), &Start { kind, payload, key }, None, None).await?.json()
    }

    /// Returns what an orchestration awaits, and the status and values that it published.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn orchestration(&self, task: &str) -> Result<Orchestration> {
        self.get(format!("/v1/orchestrations/{}", encoded(task))).await
    }
}
