//! The template of a test, in which each step that has a task gets a handler of its own.

use serde_json::{Map, Value, json};

use super::file::{Case, UNDO};
use crate::error::{Error, Result};
use crate::workflow::template::TemplateFile;

/// The beginning of the kinds of such tasks. The name of the step follows.
pub(super) const KIND: &str = "test-step.";

/// The kinds of steps that become tasks.
const KINDS: [&str; 4] = ["task", "run", "workflow", "orchestration"];

/// Returns the template of a case.
pub(super) fn rewrite(file: &TemplateFile, case: &Case) -> Result<TemplateFile> {
    let environment = case.env.as_deref();
    let canonical = file.canonical_in(environment).unwrap_or_default();
    let mut template: Value = serde_json::from_str(&canonical).map_err(|error| unwritten(&error))?;
    let fields = template.as_object_mut().into_iter().flat_map(|fields| fields.get_mut("steps"));
    for (name, step) in fields.filter_map(Value::as_object_mut).flatten() {
        if let Some(step) = step.as_object_mut() {
            rewrite_step(name, step, case);
        }
    }
    // The changes of the environment are made already, and `run.environment` still names it.
    let environments: Map<String, Value> = environment.map(|name| (name.to_owned(), json!({}))).into_iter().collect();
    if let Some(fields) = template.as_object_mut() {
        fields.remove("environments");
        if !environments.is_empty() {
            fields.insert("environments".to_owned(), environments.into());
        }
    }
    TemplateFile::read("test", &template.to_string()).map_err(|errors| unwritten(&errors))
}

#[cold]
fn unwritten(error: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("the template of the test cannot be made: {error}; report this as a fault of Onward"))
}

fn rewrite_step(name: &str, step: &mut Map<String, Value>, case: &Case) {
    let is_child = step.contains_key("workflow") || step.contains_key("orchestration");
    let is_workflow = step.contains_key("workflow");
    rewrite_kind(name, step);
    let undo = format!("{UNDO}{name}");
    match step.get_mut("undo").and_then(Value::as_object_mut) {
        Some(fields) => rewrite_kind(&undo, fields),
        None if is_workflow && case.steps.contains_key(&undo) => {
            step.insert("undo".to_owned(), json!({ "task": format!("{KIND}{undo}"), "retry": 1 }));
        }
        None => {}
    }
    if is_child {
        // Such a step is tried once, where a task has the attempts of the engine.
        step.entry("retry").or_insert(json!(1));
    }
    let events = step.get_mut("publishes").and_then(Value::as_array_mut).into_iter().flatten();
    for event in events.filter_map(Value::as_object_mut) {
        event.insert("delivery".to_owned(), json!("task"));
    }
}

/// Turns a step or an undo into a task. The expressions of a script's environment and standard
/// input are still evaluated.
fn rewrite_kind(name: &str, fields: &mut Map<String, Value>) {
    let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| fields.remove(*kind).is_some()).collect();
    if kinds.is_empty() {
        return;
    }
    fields.insert("task".to_owned(), json!(format!("{KIND}{name}")));
    if kinds == ["run"] {
        let parts = ["env", "stdin"].map(|part| (part, fields.remove(part)));
        let given: Map<String, Value> =
            parts.into_iter().filter_map(|(part, value)| Some((part.to_owned(), value?))).collect();
        fields.insert("with".to_owned(), given.into());
    }
}
