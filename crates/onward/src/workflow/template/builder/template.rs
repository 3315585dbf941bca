//! The builder of a template.

use std::time::Duration;

use serde_json::Value;

use super::fields::{Fields, duration};
use super::step::StepBuilder;
use crate::workflow::template::{OnFailure, TemplateErrors, TemplateFile};

/// Builds a template in a program. Every field has the meaning that it has in a file
/// (`docs/guides/workflows.md`), and texts hold expressions in the same way: `${{ input.id }}`.
///
/// ```
/// use std::time::Duration;
/// use onward::workflow::template::{OnFailure, StepBuilder, TemplateBuilder};
/// use serde_json::json;
///
/// let file = TemplateBuilder::new("shop/order")
///     .on_failure(OnFailure::Undo)
///     .step(
///         "charge",
///         StepBuilder::task("card.charge")
///             .with(json!({ "amount": "${{ input.amount }}" }))
///             .timeout(Duration::from_secs(30))
///             .undo(StepBuilder::task("card.refund")),
///     )
///     .step("ship", StepBuilder::task("parcels.ship").depends_on("charge").attempts(3))
///     .build()?;
/// assert_eq!(file.template().steps.len(), 2);
///
/// let ship = StepBuilder::task("parcels.ship").depends_on("charge");
/// let errors = TemplateBuilder::new("shop/order").step("ship", ship).build();
/// assert!(errors.is_err_and(|errors| errors.to_string().contains("`charge`")));
/// # Ok::<(), onward::workflow::template::TemplateErrors>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder makes nothing until `build`"]
pub struct TemplateBuilder {
    name: String,
    fields: Fields,
    steps: Fields,
}

impl TemplateBuilder {
    /// Starts a template with a name.
    pub fn new(name: impl Into<String>) -> Self {
        let (name, mut fields) = (name.into(), Fields::default());
        fields.add("name", name.as_str());
        Self { name, fields, steps: Fields::default() }
    }

    /// Adds a field of the run by its name in a file, such as `input_schema`, `key` or `queue`.
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.add(name, value);
        self
    }

    /// Sets the label of this content.
    pub fn version(self, label: impl Into<String>) -> Self {
        self.field("version", label.into())
    }

    /// Sets the JSON Schema of the input.
    pub fn input_schema(self, schema: Value) -> Self {
        self.field("input_schema", schema)
    }

    /// Sets the result of a completed run. Texts may hold expressions.
    pub fn result(self, result: impl Into<Value>) -> Self {
        self.field("result", result)
    }

    /// Sets the reaction to a bad step. Default: stop.
    pub fn on_failure(self, reaction: OnFailure) -> Self {
        let name = match reaction {
            OnFailure::Stop => "stop",
            OnFailure::Finish => "finish",
            OnFailure::Undo => "undo",
            OnFailure::Hold => "hold",
        };
        self.field("on_failure", name)
    }

    /// Sets the longest time of a run, in whole milliseconds. Default: none.
    pub fn timeout(self, time: Duration) -> Self {
        self.field("timeout", duration(time))
    }

    /// Adds a constant, which expressions read as `vars.NAME`.
    pub fn var(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.add_below("vars", name, value);
        self
    }

    /// Adds an environment: the fields that it changes, as a file has them.
    pub fn environment(mut self, name: &str, changes: Value) -> Self {
        self.fields.add_below("environments", name, changes);
        self
    }

    /// Adds a step.
    pub fn step(mut self, name: &str, step: StepBuilder) -> Self {
        self.steps.add_fields(name, step.0);
        self
    }

    /// Checks the template.
    ///
    /// # Errors
    /// All errors that a file with this content has. Their places are in the text of that file,
    /// which each error shows.
    pub fn build(self) -> Result<TemplateFile, TemplateErrors> {
        let Self { name, mut fields, steps } = self;
        fields.add_fields("steps", steps);
        let mut text = String::new();
        fields.write(&mut text, 0);
        TemplateFile::read(&name, &text)
    }
}
