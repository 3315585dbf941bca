//! The JSON Schema of templates.

use std::sync::LazyLock;

use jsonschema::Validator;

use super::super::errors::Errors;
use super::super::source::Source;
use super::super::{template_schema, yaml};
use super::examples::EXAMPLES;

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| jsonschema::validator_for(&template_schema()).unwrap());

/// Returns true if a file fits the JSON Schema, as an editor reads it.
pub(super) fn fits_schema(text: &str) -> bool {
    let source = Source::new("test.yaml", text);
    let root = yaml::load(&mut Errors::new(&source)).unwrap();
    VALIDATOR.is_valid(&root.to_json())
}

#[test]
fn every_example_fits_the_schema() {
    for (name, text) in EXAMPLES {
        assert!(fits_schema(text), "{name}");
    }
}

#[test]
fn the_schema_is_a_schema() {
    assert!(jsonschema::meta::is_valid(&template_schema()));
}

#[test]
fn a_misspelt_field_does_not_fit() {
    assert!(!fits_schema("steps: {a: {taks: t}}"));
    assert!(!fits_schema("stepps: {a: {task: t}}"));
    assert!(!fits_schema("[{task: t, nam: x}]"));
}
