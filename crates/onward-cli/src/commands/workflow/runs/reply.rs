//! The command that replies to the question of a step.

use onward::workflow::StepView;
use onward_store::TaskId;
use serde_json::Value;

/// Returns the command that sends the signal for which a step waits, with an example for each field
/// that the question requires.
pub(crate) fn reply_command(run: TaskId, step: &StepView) -> Option<String> {
    let signal = step.signal.as_deref()?;
    let values = step.reply_schema.as_ref().map(values).unwrap_or_default();
    Some(format!("onward workflow signal {run} {}{values}", quoted(signal)))
}

fn values(schema: &Value) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return format!(" --value {}", quoted(&example(schema)));
    };
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let field = |name: &Value| {
        let name = name.as_str()?;
        let value = properties.get(name).map_or_else(|| "VALUE".to_owned(), example);
        Some(format!(" --value {}", quoted(&format!("{name}={}", value.trim_matches('"')))))
    };
    required.iter().filter_map(field).collect()
}

/// Returns an example of a value as JSON.
fn example(schema: &Value) -> String {
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|values| values.first()) {
        return first.to_string();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => "true",
        Some("integer" | "number") => "1",
        Some("array") => "[]",
        Some("object") => "{}",
        Some("null") => "null",
        _ => "\"TEXT\"",
    }
    .to_owned()
}

/// Returns a word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-./=:,@+%".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_required_field_has_an_example_of_its_type() {
        let schema = json!({
            "required": ["approved", "note"],
            "properties": {"approved": {"type": "boolean"}, "note": {"type": "string"}, "more": {"type": "number"}},
        });
        assert_eq!(values(&schema), " --value approved=true --value note=TEXT");
    }

    #[test]
    fn a_value_that_is_no_object_is_json() {
        assert_eq!(values(&json!({"enum": ["it's", "no"]})), r#" --value '"it'\''s"'"#);
    }
}
