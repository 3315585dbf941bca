//! A template in one environment, with its schemas compiled.

use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::workflow::run::Schemas;
use crate::workflow::template::{Template, TemplateFile};

/// A template that can be run: all runs of it share the program.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) template: Arc<Template>,
    pub(crate) schemas: Arc<Schemas>,
    /// The registered file, for the places of errors. A stored template has no lines.
    pub(crate) source: Option<Arc<TemplateFile>>,
    input: Option<Validator>,
}

impl Program {
    /// Compiles a template.
    ///
    /// # Errors
    /// `is_invalid` if one of its schemas is no JSON Schema.
    pub(crate) fn new(template: Template, source: Option<Arc<TemplateFile>>) -> Result<Self> {
        let wrong = |error: String| Error::invalid(format!("the template `{}`: {error}", template.name));
        let schemas = Schemas::compile(&template).map_err(wrong)?;
        let input = match &template.input_schema {
            None => None,
            // Patterns of this kind take linear time.
            Some(schema) => {
                let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
                Some(options.build(schema).map_err(|error| wrong(format!("input_schema is no JSON Schema: {error}")))?)
            }
        };
        Ok(Self { template: Arc::new(template), schemas: Arc::new(schemas), source, input })
    }

    /// Returns an input with the defaults of the schema.
    ///
    /// # Errors
    /// `is_invalid` with the first fault if the input does not fit the schema.
    pub(crate) fn check_input(&self, mut input: Value) -> Result<Value> {
        if let Some(schema) = &self.template.input_schema {
            add_defaults(schema, &mut input);
        }
        if let Some(Err(error)) = self.input.as_ref().map(|schema| schema.validate(&input)) {
            let place = error.instance_path().to_string();
            let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
            let name = &self.template.name;
            return Err(Error::invalid(format!("the input does not fit the input_schema of `{name}`: {error}{at}")));
        }
        Ok(input)
    }
}

/// Adds the defaults of the properties that an object does not have, at every level.
fn add_defaults(schema: &Value, value: &mut Value) {
    let (Some(properties), Some(fields)) = (properties(schema), value.as_object_mut()) else { return };
    for (name, schema) in properties {
        if let Some(field) = fields.get_mut(name) {
            add_defaults(schema, field);
        } else if let Some(default) = schema.get("default") {
            fields.insert(name.clone(), default.clone());
        }
    }
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(input: Value) -> Result<Value> {
        let schema = r"
input_schema:
  type: object
  required: [day]
  properties:
    day: {type: string}
    to: {type: string, default: ops}
    page: {type: object, properties: {rows: {type: integer, default: 20}}}
steps: {a: {value: 1}}";
        let file = TemplateFile::read("report.yaml", schema).unwrap();
        Program::new(file.template().clone(), None)?.check_input(input)
    }

    #[test]
    fn defaults_are_filled_in_at_every_level() {
        let input = checked(json!({"day": "Monday", "page": {}})).unwrap();
        assert_eq!(input, json!({"day": "Monday", "to": "ops", "page": {"rows": 20}}));
    }

    #[test]
    fn an_input_that_does_not_fit_is_refused_with_the_place() {
        let error = checked(json!({"day": "Monday", "page": {"rows": "many"}})).unwrap_err().to_string();
        assert!(error.contains("`report`") && error.contains("/page/rows"), "{error}");
    }
}
