//! The JSON Schemas of payloads, as far as a template describes them.

use std::collections::{BTreeMap, BTreeSet};

use onward::workflow::template::{Step, StepAction, Template};
use serde_json::{Map, Value, json};

/// The schemas of a template that its expressions refer to.
pub(super) struct Schemas<'t> {
    template: &'t Template,
    /// The fields of each step, as they are in the canonical form.
    fields: BTreeMap<&'t str, &'t Map<String, Value>>,
}

impl<'t> Schemas<'t> {
    /// Reads the steps of a template's canonical form.
    pub(super) fn new(template: &'t Template, canonical: &'t Value) -> Self {
        let steps = canonical.get("steps").and_then(Value::as_object).into_iter().flatten();
        let fields = steps.filter_map(|(name, step)| Some((name.as_str(), step.as_object()?))).collect();
        Self { template, fields }
    }

    /// Returns a field of a step, or of its undo.
    fn field(&self, step: &str, is_undo: bool, field: &str) -> Option<&'t Value> {
        let fields = *self.fields.get(step)?;
        let fields = if is_undo { fields.get("undo")?.as_object()? } else { fields };
        fields.get(field)
    }

    /// Returns the schema of the input.
    pub(super) fn input(&self) -> Value {
        self.template.input_schema.clone().unwrap_or(Value::Bool(true))
    }

    /// Returns the schema of a step's result, as other steps see it.
    pub(super) fn result(&self, step: &Step) -> Value {
        let one = self.result_of_one(step);
        match &step.action {
            StepAction::Work(work) if work.each.is_some() => {
                let item = if one == Value::Bool(true) { one } else { json!({ "anyOf": [one, { "type": "null" }] }) };
                json!({ "type": "array", "items": item })
            }
            _ => one,
        }
    }

    /// Returns the schema of the result of a task of a step.
    pub(super) fn result_of_one(&self, step: &Step) -> Value {
        let question = || self.field(&step.name, false, "ask")?.get("schema").cloned();
        let schema = self.field(&step.name, false, "result_schema").cloned();
        schema.or_else(question).or_else(|| self.choice(step)).unwrap_or(Value::Bool(true))
    }

    /// Returns the schema of the result of a step that chooses others: a name, a list of names, or
    /// an object with that list.
    fn choice(&self, step: &Step) -> Option<Value> {
        let steps = step.chooses.iter().filter_map(|number| self.template.steps.get(*number));
        let names: Vec<&str> = steps.map(|step| step.name.as_str()).collect();
        if names.is_empty() {
            return None;
        }
        let name = json!({ "enum": names });
        let list = json!({ "type": "array", "items": name });
        let object = json!({ "type": "object", "required": ["chosen"], "properties": { "chosen": list } });
        Some(json!({ "anyOf": [name, list, object] }))
    }

    /// Returns the schema of the payload of a step, or of its undo.
    pub(super) fn payload(&self, step: &Step, is_undo: bool) -> Value {
        match self.field(&step.name, is_undo, "with") {
            Some(with) => self.of_template(step, with),
            None => object([("input", self.input()), ("results", self.results(step, is_undo))]),
        }
    }

    /// Returns the schema of `results`: those of the ancestors, and for an undo of all steps.
    fn results(&self, step: &Step, is_undo: bool) -> Value {
        let ancestors = self.ancestors(step);
        let steps = self.template.steps.iter().filter(|one| is_undo || ancestors.contains(one.name.as_str()));
        let properties: Map<String, Value> = steps.map(|one| (one.name.clone(), self.result(one))).collect();
        // A step that was skipped has no result.
        json!({ "type": "object", "properties": properties })
    }

    fn ancestors(&self, step: &Step) -> BTreeSet<&'t str> {
        let mut found = BTreeSet::new();
        let mut unread: Vec<usize> = step.depends_on.iter().map(|dependency| dependency.step).collect();
        while let Some(number) = unread.pop() {
            let Some(before) = self.template.steps.get(number) else { continue };
            if found.insert(before.name.as_str()) {
                unread.extend(before.depends_on.iter().map(|dependency| dependency.step));
            }
        }
        found
    }

    /// Returns the schema of what a template of a value makes.
    fn of_template(&self, step: &Step, with: &Value) -> Value {
        match with {
            Value::Object(fields) => {
                object(fields.iter().map(|(name, part)| (name.as_str(), self.of_template(step, part))))
            }
            Value::String(text) => self.of_text(step, text),
            Value::Number(number) if number.is_f64() => json!({ "type": "number" }),
            Value::Number(_) => json!({ "type": "integer" }),
            Value::Bool(_) => json!({ "type": "boolean" }),
            Value::Null | Value::Array(_) => Value::Bool(true),
        }
    }

    /// Returns the schema of a text: of an expression, if it is one as a whole and a path.
    fn of_text(&self, step: &Step, text: &str) -> Value {
        let expression = text.strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}"));
        match expression.filter(|expression| !expression.contains("}}")) {
            Some(expression) => self.of_path(step, expression.trim()).unwrap_or(Value::Bool(true)),
            None => json!({ "type": "string" }),
        }
    }

    /// Returns the schema of an item of a step with `each`: an element of the list, or a part of a
    /// range.
    fn item(&self, step: &Step) -> Option<Value> {
        match self.field(&step.name, false, "each")? {
            Value::String(list) => {
                let list = list.strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}")).unwrap_or(list);
                self.of_path(step, list.trim())?.get("items").cloned()
            }
            _ => Some(object(["from", "to"].map(|end| (end, json!({ "type": "integer" }))))),
        }
    }

    fn of_path(&self, step: &Step, path: &str) -> Option<Value> {
        let mut parts = path.split('.');
        let root = match parts.next()? {
            "input" => self.input(),
            "item" => self.item(step)?,
            "index" => json!({ "type": "integer" }),
            "run" => json!({ "properties": { "id": { "type": "integer" }, "name": { "type": "string" } } }),
            "steps" => {
                let other = self.template.number(parts.next()?).and_then(|number| self.template.steps.get(number))?;
                (parts.next()? == "result").then(|| self.result(other))?
            }
            _ => return None,
        };
        parts.try_fold(root, |schema, part| schema.get("properties")?.get(part).cloned())
    }
}

/// Returns the schema of an object that has all of these properties.
fn object<'n>(properties: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": "object", "required": required, "properties": properties })
}
