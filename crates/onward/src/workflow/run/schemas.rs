//! The JSON Schemas of a template, compiled once.

use jsonschema::{PatternOptions, Validator};
use onward_store::text::Shown;

use crate::workflow::expression::Value;
use crate::workflow::template::{Step, StepAction, Template};

/// The compiled schemas of a template. All runs of it share them.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    /// The schema of the run's result.
    pub(in crate::workflow::run) run: Option<Validator>,
    pub(in crate::workflow::run) steps: Vec<StepSchemas>,
}

/// The compiled schemas of a step.
#[derive(Debug, Default)]
pub(in crate::workflow::run) struct StepSchemas {
    pub(in crate::workflow::run) result: Option<Validator>,
    /// The schema of the reply to `ask`.
    pub(in crate::workflow::run) ask: Option<Validator>,
    pub(in crate::workflow::run) publications: Vec<Option<Validator>>,
}

impl Schemas {
    /// Compiles the schemas of a template.
    ///
    /// # Errors
    /// If one is no JSON Schema. The message names its field.
    pub(crate) fn compile(template: &Template) -> Result<Self, String> {
        let run = compiled(template.result_schema.as_ref(), || "result_schema".to_owned())?;
        let steps = template.steps.iter().map(StepSchemas::compile).collect::<Result<_, _>>()?;
        Ok(Self { run, steps })
    }

    pub(in crate::workflow::run) fn of(&self, step: usize) -> Option<&StepSchemas> {
        self.steps.get(step)
    }
}

impl StepSchemas {
    fn compile(step: &Step) -> Result<Self, String> {
        let place = |field: &str| format!("{field} of step `{}`", step.name);
        let ask = match &step.action {
            StepAction::Signal(signal) => signal.ask.as_ref().and_then(|ask| ask.schema.as_ref()),
            _ => None,
        };
        let publications = step.publishes.iter();
        let publication = |(at, event): (usize, &crate::workflow::template::Publication)| {
            compiled(event.schema.as_ref(), || place(&format!("publishes[{at}].schema")))
        };
        Ok(Self {
            result: compiled(step.result_schema.as_ref(), || place("result_schema"))?,
            ask: compiled(ask, || place("ask.schema"))?,
            publications: publications.enumerate().map(publication).collect::<Result<_, _>>()?,
        })
    }
}

fn compiled(schema: Option<&serde_json::Value>, place: impl FnOnce() -> String) -> Result<Option<Validator>, String> {
    let Some(schema) = schema else { return Ok(None) };
    // Patterns of this kind take linear time, and a template cannot have references elsewhere.
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    match options.build(schema) {
        Ok(validator) => Ok(Some(validator)),
        Err(error) => Err(format!("{} is no JSON Schema: {error}", place())),
    }
}

/// Checks a value against a schema.
///
/// # Errors
/// The first fault, with its place in the value.
pub(in crate::workflow::run) fn check(schema: Option<&Validator>, value: &Value) -> Result<(), String> {
    let Some(schema) = schema else { return Ok(()) };
    let json = serde_json::Value::from(value);
    schema.validate(&json).map_err(|error| {
        let (fault, place) = (error.to_string(), error.instance_path().to_string());
        let at = if place.is_empty() { String::new() } else { format!(" at {}", Shown(&place)) };
        format!("{}{at}", Shown(&fault))
    })
}
