//! Templates and runs of workflows.

use serde::Deserialize;

use crate::client::tasks::with_query;
use crate::client::{Client, Pages};
use crate::error::Result;
use crate::http::{Request, encoded};
use crate::types::{CriticalPath, Run, StartRun, Submitted, Task, Template};

#[derive(Deserialize)]
struct StoredTemplate {
    template: Template,
}

impl Client {
    /// Starts a run of a stored workflow.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn start(&self, start: &StartRun) -> Result<Submitted> {
        let path = format!("/v1/templates/{}/runs", encoded(&start.template));
        self.create(path, start, start.idempotency_key.as_deref(), None).await?.json()
    }

    /// Returns a run of a workflow and its steps.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn run(&self, run: &str) -> Result<Run> {
        self.get(format!("/v1/runs/{}", encoded(run))).await
    }

    /// Returns the chain of steps that determined the duration of a run, and the slack of the
    /// others.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn critical_path(&self, run: &str) -> Result<CriticalPath> {
        self.get(format!("/v1/runs/{}/critical-path", encoded(run))).await
    }

    /// Lists the tasks of runs, the newest first. `query` is that of `GET /v1/runs`; empty for all.
    #[must_use]
    pub fn runs(&self, query: &str) -> Pages<Task> {
        self.pages(with_query("/v1/runs", query))
    }

    /// Stores a template in YAML as the newest of its name. The same content is stored once.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn put_template(&self, name: &str, yaml: &str) -> Result<Template> {
        let request = Request::put(format!("/v1/templates/{}", encoded(name)));
        let request = request.bytes("application/yaml", yaml.as_bytes().to_vec());
        Ok(self.send(request).await?.json::<StoredTemplate>()?.template)
    }

    /// Lists the stored templates, by name.
    #[must_use]
    pub fn templates(&self) -> Pages<Template> {
        self.pages("/v1/templates")
    }
}
