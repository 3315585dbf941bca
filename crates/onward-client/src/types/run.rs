//! Runs of workflows, and stored templates.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};

/// A start of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct StartRun {
    #[serde(skip)]
    pub(crate) template: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip)]
    pub(crate) idempotency_key: Option<String>,
}

impl StartRun {
    /// Creates a start of the newest version of a stored template, or of `NAME@LABEL`.
    #[must_use]
    pub fn new(template: impl Into<String>) -> Self {
        Self { template: template.into(), ..Self::default() }
    }

    /// Sets the input. Default: null.
    ///
    /// # Errors
    /// Returns an error if the value has no form in JSON.
    pub fn input<T: Serialize + ?Sized>(self, input: &T) -> Result<Self> {
        let input = serde_json::to_value(input)
            .map_err(|error| Error::invalid(format!("the input cannot be written as JSON: {error}")))?;
        Ok(Self { input: Some(input), ..self })
    }

    /// Sets the environment of the template. Default: none.
    #[must_use]
    pub fn environment(self, name: impl Into<String>) -> Self {
        Self { environment: Some(name.into()), ..self }
    }

    /// Sets a key for a template without one: a second start with it finds the first run.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Sets the idempotency key of a start that a program repeats after its own restart. It holds
    /// for a day. Default: a random one for each call.
    #[must_use]
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }
}

/// A run of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Run {
    /// The id, which is that of its task.
    pub id: String,
    /// The name of the template.
    pub workflow: String,
    /// The phase.
    pub phase: String,
    /// True if the run has ended.
    pub is_ended: bool,
    /// True if the run is paused.
    pub paused: bool,
    /// The failure of the run itself, or the reason of its bad end.
    pub error: Option<String>,
    /// The steps, each after those that it depends on.
    pub steps: Vec<Step>,
}

/// A step of a run.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Step {
    /// The name.
    pub name: String,
    /// The names of the steps that it depends on.
    pub depends_on: Vec<String>,
    /// The state.
    pub state: String,
    /// The error, or the reason why it did not run.
    pub reason: Option<String>,
    /// The question that it asks people.
    pub question: Option<String>,
    /// The name of the signal for which it waits.
    pub signal: Option<String>,
    /// The JSON Schema of the replies to the question.
    pub reply_schema: Option<Value>,
    /// The id of the task of a step that ended.
    pub task: Option<String>,
    /// The number of attempts.
    pub attempts: u32,
    /// The time at which it began.
    pub started_at: Option<String>,
    /// The time of its end.
    pub ended_at: Option<String>,
    /// The time until which it waits.
    pub until: Option<String>,
}

/// A stored template.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Template {
    /// The name.
    pub name: String,
    /// The label of the version.
    pub label: String,
    /// The hash of the content.
    pub hash: String,
    /// The time at which it was stored first.
    pub stored_at: String,
    /// True if it is the newest of its name.
    pub is_newest: bool,
}
