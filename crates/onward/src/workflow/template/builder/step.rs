//! The builder of a step.

use std::time::Duration;

use serde_json::{Value, json};

use super::fields::{Fields, duration};

/// Builds a step of a template. It starts with the kind of the step: [`task`](Self::task),
/// [`run`](Self::run), [`workflow`](Self::workflow), [`orchestration`](Self::orchestration),
/// [`wait`](Self::wait), [`signal`](Self::signal), [`value`](Self::value) or [`fail`](Self::fail).
#[derive(Debug, Clone)]
#[must_use = "a step is part of a template once it is added"]
pub struct StepBuilder(pub(super) Fields);

impl StepBuilder {
    fn of(kind: &str, value: impl Into<Value>) -> Self {
        Self(Fields::default()).field(kind, value)
    }

    /// Starts a step that is a task for the handlers of a kind.
    pub fn task(kind: impl Into<String>) -> Self {
        Self::of("task", kind.into())
    }

    /// Starts a step that runs a script.
    pub fn run(script: impl Into<String>) -> Self {
        Self::of("run", script.into())
    }

    /// Starts a step that is a run of another template: `NAME` or `NAME@LABEL`.
    pub fn workflow(reference: impl Into<String>) -> Self {
        Self::of("workflow", reference.into())
    }

    /// Starts a step that is an orchestration.
    pub fn orchestration(kind: impl Into<String>) -> Self {
        Self::of("orchestration", kind.into())
    }

    /// Starts a step that waits for a time, in whole milliseconds.
    pub fn wait(time: Duration) -> Self {
        Self::of("wait", duration(time))
    }

    /// Starts a step that waits for a signal.
    pub fn signal(name: impl Into<String>) -> Self {
        Self::of("signal", name.into())
    }

    /// Starts a step that has a value. Texts may hold expressions.
    pub fn value(value: impl Into<Value>) -> Self {
        Self::of("value", value)
    }

    /// Starts a step that fails with a message.
    pub fn fail(message: impl Into<String>) -> Self {
        Self::of("fail", message.into())
    }

    /// Adds a field by its name in a file, such as `queue`, `each` or `publishes`.
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.add(name, value);
        self
    }

    /// Adds a step that has to complete before.
    pub fn depends_on(mut self, step: &str) -> Self {
        self.0.add_item("depends_on", step);
        self
    }

    /// Adds a step that has to end badly before.
    pub fn depends_on_failed(mut self, step: &str) -> Self {
        self.0.add_item("depends_on", json!({ step: "failed" }));
        self
    }

    /// Adds a step that has to end before, in any way.
    pub fn depends_on_ended(mut self, step: &str) -> Self {
        self.0.add_item("depends_on", json!({ step: "ended" }));
        self
    }

    /// Adds a step that the result of this one can choose.
    pub fn chooses(mut self, step: &str) -> Self {
        self.0.add_item("chooses", step);
        self
    }

    /// Sets the condition under which the step runs, an expression. Default: always.
    pub fn condition(self, expression: impl Into<String>) -> Self {
        self.field("if", expression.into())
    }

    /// Sets the payload. Texts may hold expressions. Default: the input and the results before.
    pub fn with(self, payload: impl Into<Value>) -> Self {
        self.field("with", payload)
    }

    /// Adds an environment variable of a script. The text may hold expressions.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.add_below("env", name, value.into());
        self
    }

    /// Runs the step once for each item of a list, an expression, `parallel` at once: 1 to 10 000.
    pub fn each(self, expression: impl Into<String>, parallel: u32) -> Self {
        self.field("each", expression.into()).field("parallel", parallel)
    }

    /// Sets the number of attempts, the first included. Default: that of the engine.
    pub fn attempts(self, attempts: u32) -> Self {
        self.field("retry", attempts)
    }

    /// Sets the longest time of an attempt, in whole milliseconds. Default: none.
    pub fn timeout(self, time: Duration) -> Self {
        self.field("timeout", duration(time))
    }

    /// Counts a bad end as completed, with the result null.
    pub fn continue_on_failure(self) -> Self {
        self.field("on_failure", "continue")
    }

    /// Sets the JSON Schema of the result.
    pub fn result_schema(self, schema: Value) -> Self {
        self.field("result_schema", schema)
    }

    /// Sets the step that takes back what this one did.
    pub fn undo(mut self, undo: Self) -> Self {
        self.0.add_fields("undo", undo.0);
        self
    }
}
