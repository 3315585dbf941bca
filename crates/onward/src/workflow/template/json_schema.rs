//! The JSON Schema of templates, for editors: made from the table of fields.

use onward_store::bounds::TAGS;
use serde_json::{Map, Value, json};

use super::bounds::{DEPENDENCIES_OF_STEP, ENVIRONMENTS, STEPS};
use super::duration;
use super::fields::{Field, FieldCondition, FieldType, Place};
use super::names;

/// Returns the JSON Schema of templates.
///
/// A template that is read without errors fits it. What it cannot express, such as names of steps
/// that exist, is checked by [`TemplateFile::read`](super::TemplateFile::read) alone.
#[must_use]
pub fn template_schema() -> Value {
    let mut definitions = Map::new();
    for place in Place::ALL {
        definitions.insert(place.name().into(), fields_schema(place, |field| !field.is_listed));
    }
    definitions.insert("listed_step".into(), fields_schema(Place::Step, |_| true));
    definitions.insert("environment".into(), environment_schema());
    definitions.insert("duration".into(), json!({ "type": "string", "pattern": duration::PATTERN }));
    definitions.insert("expression".into(), json!({ "type": ["string", "boolean", "number"], "minLength": 1 }));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Onward workflow template",
        "if": { "type": "array" },
        "then": listed_steps(),
        "else": reference("template"),
        "$defs": definitions,
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Returns the schema of a map of fields.
fn fields_schema(place: Place, is_in: impl Fn(&Field) -> bool) -> Value {
    let fields = || place.fields().iter().filter(|field| is_in(field));
    let properties: Map<String, Value> = fields().map(|field| (field.name.into(), described(field))).collect();
    let required: Vec<&str> = fields().filter(|field| field.is_required).map(|field| field.name).collect();
    let rules: Map<String, Value> = fields().filter_map(rules).collect();
    let mut schema = json!({
        "type": "object",
        "minProperties": 1,
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    if !rules.is_empty() {
        schema["dependentSchemas"] = rules.into();
    }
    if !place.kinds().is_empty() {
        schema["oneOf"] = place.kinds().iter().map(|kind| json!({ "required": [kind] })).collect();
    }
    schema
}

fn described(field: &Field) -> Value {
    let mut schema = type_schema(field.kind);
    let default = if field.default.is_empty() { String::new() } else { format!(" Default: {}.", field.default) };
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".into(), format!("{}{default}", field.meaning).into());
    }
    schema
}

/// Returns what must hold where a field is present.
fn rules(field: &Field) -> Option<(String, Value)> {
    let any = |others: &[FieldCondition]| json!({ "anyOf": others.iter().map(present).collect::<Vec<_>>() });
    let rule = match (field.not_beside, field.needs) {
        ([], []) => return None,
        (others, []) => json!({ "not": any(others) }),
        ([], needed) => any(needed),
        (others, needed) => json!({ "not": any(others), "allOf": [any(needed)] }),
    };
    Some((field.name.into(), rule))
}

fn present(beside: &FieldCondition) -> Value {
    match beside.values {
        [] => json!({ "required": [beside.field] }),
        values => json!({ "required": [beside.field], "properties": { beside.field: { "enum": values } } }),
    }
}

fn type_schema(kind: FieldType) -> Value {
    match kind {
        FieldType::Text | FieldType::TextTemplate => json!({ "type": "string", "minLength": 1 }),
        FieldType::TemplateName => pattern(names::TEMPLATE_PATTERN),
        FieldType::StepName => pattern(names::STEP_PATTERN),
        FieldType::WorkflowReference => pattern(names::REFERENCE_PATTERN),
        FieldType::Name => json!({ "type": "string", "minLength": 1, "maxLength": 128, "not": pattern(EXPRESSION) }),
        FieldType::Script => json!({ "type": "string", "minLength": 1, "not": pattern(EXPRESSION) }),
        FieldType::Duration { zero: true } => reference("duration"),
        FieldType::Duration { zero: false } => json!({ "allOf": [reference("duration")], "not": pattern(ZERO) }),
        FieldType::KeepFor => json!({ "anyOf": [reference("duration"), { "const": "forever" }] }),
        FieldType::Wait => {
            let templated = json!({ "type": "string", "pattern": EXPRESSION });
            json!({ "anyOf": [reference("duration"), templated, reference("wait")] })
        }
        FieldType::Integer { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        FieldType::Factor => json!({ "type": "number", "minimum": 1 }),
        FieldType::Boolean => json!({ "type": "boolean" }),
        FieldType::Choice(words) => json!({ "enum": words }),
        FieldType::Tolerate => {
            let items = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
            json!({ "anyOf": [items, pattern("^(all|[0-9]+([.][0-9]+)?%)$")] })
        }
        FieldType::Expression => reference("expression"),
        FieldType::Each => json!({ "anyOf": [reference("expression"), reference("each")] }),
        FieldType::ValueTemplate => json!({}),
        FieldType::Variables => {
            let names = json!({ "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" });
            json!({ "type": "object", "propertyNames": names, "additionalProperties": { "type": "string" } })
        }
        FieldType::Tags => {
            json!({ "type": "object", "maxProperties": TAGS, "additionalProperties": { "type": "string" } })
        }
        FieldType::Schema | FieldType::Constants => json!({ "type": "object" }),
        FieldType::StepNames => step_names(),
        FieldType::Dependencies => dependencies(),
        FieldType::Texts => json!({ "type": "array", "items": { "type": "string", "minLength": 1 } }),
        FieldType::Retry => {
            let attempts = json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX });
            json!({ "anyOf": [attempts, reference("retry")] })
        }
        FieldType::Map(place) => json!({ "allOf": [reference(place.name())] }),
        FieldType::Maps(place) => json!({ "type": "array", "items": reference(place.name()) }),
        FieldType::Steps => json!({ "anyOf": [listed_steps(), named_steps()] }),
        FieldType::Environments => json!({
            "type": "object",
            "maxProperties": ENVIRONMENTS,
            "propertyNames": { "pattern": "^[a-z0-9_-]+$" },
            "additionalProperties": reference("environment"),
        }),
    }
}

/// The beginning of an expression.
const EXPRESSION: &str = r"[$][{][{]";

/// A duration of zero.
const ZERO: &str = "^(0+(ms|s|m|h|d|w))+$";

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

fn step_names() -> Value {
    let items = pattern(names::STEP_PATTERN);
    json!({ "type": "array", "items": items, "minItems": 1, "maxItems": DEPENDENCIES_OF_STEP, "uniqueItems": true })
}

fn dependencies() -> Value {
    let conditional = json!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": { "enum": ["failed", "ended"] },
    });
    let items = json!({ "anyOf": [pattern(names::STEP_PATTERN), conditional] });
    json!({ "type": "array", "items": items, "maxItems": DEPENDENCIES_OF_STEP, "uniqueItems": true })
}

fn named_steps() -> Value {
    json!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": STEPS,
        "propertyNames": { "pattern": names::STEP_PATTERN },
        "additionalProperties": reference("step"),
    })
}

fn listed_steps() -> Value {
    let items = json!({ "anyOf": [type_schema(FieldType::Script), reference("listed_step")] });
    json!({ "type": "array", "minItems": 1, "maxItems": STEPS, "items": items })
}

/// Returns the schema of what an environment changes. Values may be null, and maps may be parts, so
/// only the names of fields are checked.
fn environment_schema() -> Value {
    let anything = |fields: &[Field], is_in: fn(&Field) -> bool| -> Map<String, Value> {
        fields.iter().filter(|field| is_in(field)).map(|field| (field.name.into(), true.into())).collect()
    };
    let step = anything(Place::Step.fields(), |field| !field.is_listed);
    let step = json!({ "type": "object", "properties": step, "additionalProperties": false });
    let mut properties = anything(Place::Run.fields(), |field| !field.is_fixed);
    properties.insert("steps".into(), json!({ "type": "object", "additionalProperties": step }));
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}
