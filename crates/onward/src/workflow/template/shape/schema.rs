//! The bounds of JSON Schemas in a template. Whether one is a valid schema is checked where it is
//! compiled.

use super::super::bounds::SCHEMA_BYTES;
use super::super::errors::{Errors, Fault, shown};
use super::super::yaml::{Node, Value};

/// The keywords whose values are data, in which `$ref` has no meaning.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// The keywords that refer to other schemas.
const REFERENCES: [&str; 2] = ["$ref", "$dynamicRef"];

/// Checks that a schema is a map of bounded size without references to other documents.
pub(crate) fn check(field: &str, node: &Node, errors: &mut Errors<'_>) -> Result<(), Fault> {
    if !matches!(node.value, Value::Map(_)) {
        return Err(Fault::new(format!("`{field}` is a JSON Schema, which is a map, not {}", node.value.kind())));
    }
    let length = node.to_json().to_string().len();
    if length > SCHEMA_BYTES {
        return Err(Fault::new(format!("`{field}` has {length} bytes as JSON; a schema has at most {SCHEMA_BYTES}")));
    }
    references(node, errors);
    Ok(())
}

fn references(node: &Node, errors: &mut Errors<'_>) {
    node.items().iter().for_each(|item| references(item, errors));
    for entry in node.entries().iter().filter(|entry| !DATA.contains(&&*entry.key)) {
        match entry.value.as_text() {
            Some(target) if REFERENCES.contains(&&*entry.key) && !target.starts_with('#') => {
                errors.add(entry.value.span, || remote(&entry.key, target));
            }
            _ => references(&entry.value, errors),
        }
    }
}

fn remote(keyword: &str, target: &str) -> Fault {
    let target = shown(target);
    Fault::new(format!(
        "`{keyword}: {target}` is in another document; put the schema under `$defs` and refer to it as `#/$defs/NAME`"
    ))
}
