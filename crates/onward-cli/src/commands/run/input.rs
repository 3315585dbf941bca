//! The input of a run, from the command line.

use std::path::Path;

use onward::workflow::template::Template;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::commands::submit::read_payload;
use crate::exit_code::wrong_usage;
use crate::values::parse_json;

/// Returns the input that the `--input` options describe together: `null` without any.
pub(crate) fn read_input(given: &[String], template: &Template) -> anyhow::Result<Value> {
    let schema = template.input_schema.as_ref();
    let input = read_value("--input", given, schema)?;
    // A template that names fields expects an object, so that their defaults apply.
    let names_fields = schema.is_some_and(|schema| schema.get("properties").is_some());
    Ok(if input.is_null() && names_fields { Value::Object(Map::new()) } else { input })
}

/// Returns the value that the uses of an option describe together: `null` without any. Each is
/// JSON, @FILE or NAME=VALUE.
pub(crate) fn read_value(option: &str, given: &[String], schema: Option<&Value>) -> anyhow::Result<Value> {
    let mut value = Value::Null;
    for text in given {
        let part = part(option, text, schema)?;
        value = match (value, part) {
            (Value::Null, part) => part,
            (Value::Object(mut fields), Value::Object(more)) => {
                fields.extend(more);
                Value::Object(fields)
            }
            (_, _) => {
                return Err(wrong_usage(format!(
                    "{option} {text:?}: it cannot be added to the value before it; only objects and NAME=VALUE can be combined"
                )));
            }
        };
    }
    Ok(value)
}

fn part(option: &str, text: &str, schema: Option<&Value>) -> anyhow::Result<Value> {
    if let Some(file) = text.strip_prefix('@') {
        let path = Path::new(file);
        let bytes = read_payload(option, (file != "-").then_some(path), Some("-"))?;
        let content = std::str::from_utf8(&bytes).map_err(|error| error.to_string());
        let value = content.and_then(parse_json);
        return value.map_err(|error| wrong_usage(format!("{option} {text}: the file cannot be read: {error}")));
    }
    if let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_name(name)) {
        let value = field(name, value, schema).map_err(|error| wrong_usage(format!("{option} {text:?}: {error}")))?;
        return Ok(Value::Object(Map::from_iter([(name.to_owned(), value)])));
    }
    parse_json(text).map_err(|error| {
        wrong_usage(format!(
            "{option} {text:?}: {error}; write JSON (a text in quotes of its own), @FILE, or NAME=VALUE"
        ))
    })
}

/// Returns true for the name of a field. JSON never looks like one.
fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|next| next.is_alphanumeric() || matches!(next, '_' | '-' | '.'))
}

/// Returns the value of a field. The schema decides whether `7` is a number or a text.
///
/// # Errors
/// Returns a text for a message if the value has a number that would lose digits.
fn field(name: &str, value: &str, schema: Option<&Value>) -> Result<Value, String> {
    let kind = schema.and_then(|schema| schema.get("properties")?.get(name)?.get("type"));
    let is_text = kind.is_some_and(|kind| kind == "string");
    if is_text || serde_json::from_str::<IgnoredAny>(value).is_err() {
        return Ok(Value::String(value.to_owned()));
    }
    parse_json(value)
}

#[cfg(test)]
mod tests {
    use onward::workflow::template::TemplateFile;
    use serde_json::json;

    use super::*;

    const TEMPLATE: &str = "input_schema: {type: object, properties: {day: {type: string}, rows: {type: integer}}}\nsteps: {a: {value: 1}}";

    fn input(given: &[&str]) -> anyhow::Result<Value> {
        let file = TemplateFile::read("x.yaml", TEMPLATE).unwrap();
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        read_input(&given, file.template())
    }

    #[test]
    fn a_field_that_the_schema_makes_a_text_stays_one() {
        assert_eq!(input(&["day=7", "rows=7"]).unwrap(), json!({"day": "7", "rows": 7}));
    }

    #[test]
    fn a_value_that_is_not_json_is_a_text() {
        assert_eq!(input(&["other=a b"]).unwrap(), json!({"other": "a b"}));
    }

    #[test]
    fn a_number_that_would_lose_digits_is_refused_in_every_form() {
        for text in ["rows=123456789012345678901", "[0.12345678901234567890]", "{\"rows\": 1e400}"] {
            let error = input(&[text]).unwrap_err().to_string();
            assert!(error.contains("--input") && error.contains("number"), "{error}");
        }
        assert_eq!(input(&["day=123456789012345678901"]).unwrap(), json!({"day": "123456789012345678901"}));
    }

    #[test]
    fn a_later_field_replaces_an_earlier_one() {
        assert_eq!(input(&[r#"{"rows": 1, "day": "x"}"#, "rows=2"]).unwrap(), json!({"rows": 2, "day": "x"}));
    }

    #[test]
    fn a_template_with_fields_gets_an_object() {
        assert_eq!(input(&[]).unwrap(), json!({}));
    }

    #[test]
    fn a_text_that_is_no_input_is_refused_with_the_forms() {
        let error = input(&["{day"]).unwrap_err().to_string();
        assert!(error.contains("{day") && error.contains("NAME=VALUE"), "{error}");
    }
}
