//! Retries, events and environments of a template of Tasker.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::import::Notes;
use super::steps::Steps;
use super::write::{OutputValue, Pair, pair};
use crate::workflow::template::yaml::Node;

/// Returns a value whose texts are not read as expressions.
pub(super) fn escaped(value: Value) -> Value {
    match value {
        Value::String(text) => text.replace("${{", "$${{").into(),
        Value::Array(items) => items.into_iter().map(escaped).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, escaped(value))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

/// Returns a duration of whole seconds.
pub(super) fn seconds(value: &Value) -> Option<String> {
    value.as_u64().filter(|seconds| *seconds > 0).map(|seconds| format!("{seconds}s"))
}

fn milliseconds(value: &Value) -> Option<Value> {
    let time = value.as_u64()?;
    Some(if time.is_multiple_of(1000) { format!("{}s", time / 1000) } else { format!("{time}ms") }.into())
}

/// Returns `retry`, if the step has one.
pub(super) fn retry(node: &Node, path: &str, notes: &mut Notes) -> Option<Value> {
    if node.entries().is_empty() {
        return None;
    }
    let path = &format!("{path}.retry");
    let (mut fields, mut is_tried_once) = (Map::new(), false);
    for entry in node.entries() {
        let value = entry.value.to_json();
        let text = value.as_str().unwrap_or_default();
        match &*entry.key {
            "retryable" => is_tried_once = value == json!(false),
            "max_attempts" => drop(fields.insert("attempts".to_owned(), value)),
            "backoff" if matches!(text, "linear" | "exponential") => drop(fields.insert("backoff".to_owned(), value)),
            "backoff" if text == "none" => {
                fields.insert("backoff".to_owned(), "constant".into());
                fields.insert("first".to_owned(), "0s".into());
            }
            "backoff" => notes.leave_out(path, entry, format!("there is no `{text}`; the delays grow exponentially")),
            "backoff_base_ms" => fields.extend(milliseconds(&value).map(|first| ("first".to_owned(), first))),
            "max_backoff_ms" => fields.extend(milliseconds(&value).map(|most| ("most".to_owned(), most))),
            _ => notes.leave_out(path, entry, "this import does not know the field"),
        }
    }
    if is_tried_once {
        return Some(json!(1));
    }
    if fields.get("backoff").is_some_and(|backoff| backoff == "constant") {
        fields.remove("most");
    }
    Some(Value::Object(fields))
}

/// Returns `publishes`, if the step publishes an event.
pub(super) fn events(node: &Node, path: &str, notes: &mut Notes) -> Option<Pair> {
    let mut published = Vec::new();
    for event in node.items() {
        published.extend(publications(event, path, notes));
    }
    (!published.is_empty()).then(|| pair("publishes", OutputValue::List(published)))
}

/// Returns an item of `publishes` for each end of the step at which an event is published.
fn publications(event: &Node, path: &str, notes: &mut Notes) -> Vec<OutputValue> {
    let name = event.get("name").and_then(Node::as_text).unwrap_or("event");
    let path = &format!("{path}.publishes_events.{name}");
    let (mut ends, mut schema, mut is_left_out) = (vec!["completed"], None, false);
    for entry in event.entries() {
        let value = entry.value.to_json();
        let text = value.as_str().unwrap_or_default();
        match (&*entry.key, text) {
            ("name" | "description", _) | ("delivery_mode", "durable") => {}
            ("condition", "success") => ends = vec!["completed"],
            ("condition", "failure") => ends = vec!["failed", "dead"],
            ("condition", "permanent_failure") => ends = vec!["failed"],
            ("condition", "always") => ends = vec!["ended"],
            ("condition", "retryable_failure") => {
                ends = vec!["dead"];
                notes.add(path, entry, "an attempt that is tried again publishes nothing; the last one does");
            }
            ("schema", _) if !value.is_null() => schema = Some(value),
            ("delivery_mode", _) => {
                is_left_out = true;
                notes.leave_out(
                    path,
                    entry,
                    "the event is left out: events are delivered as tasks, with `delivery: task`",
                );
            }
            _ => notes.leave_out(path, entry, "this import does not know the field"),
        }
    }
    let publication = |end: &str| {
        let mut pairs = vec![pair("name", name), pair("when", end), pair("delivery", "task")];
        pairs.extend(schema.clone().map(|schema| pair("schema", schema)));
        OutputValue::Map(pairs)
    };
    if is_left_out { Vec::new() } else { ends.into_iter().map(publication).collect() }
}

/// Returns the steps whose settings an environment changes, by their old names; `ALL` for all.
pub(super) fn steps_with_settings(environments: &Node) -> BTreeSet<String> {
    let steps = environments.entries().iter().filter_map(|environment| environment.value.get("steps"));
    let changed = steps.flat_map(Node::items).filter(|step| settings(step).is_some());
    changed.filter_map(|step| Some(step.get("name")?.as_text()?.to_owned())).collect()
}

fn settings(step: &Node) -> Option<&Node> {
    step.get("handler")?.get("initialization").filter(|settings| !settings.entries().is_empty())
}

/// Returns the overlays of environments. An override of `ALL` is written at each step, because it
/// also replaces a step's own values.
pub(super) fn environments(node: &Node, steps: &Steps<'_>, notes: &mut Notes) -> Vec<Pair> {
    let mut overlays = Vec::new();
    for environment in node.entries() {
        let mut changes: Map<String, Value> = Map::new();
        let items = environment.value.get("steps").map_or(&[][..], Node::items);
        // The override of one step wins over that of all.
        let is_all = |step: &&Node| step.get("name").and_then(Node::as_text) == Some("ALL");
        for step in items.iter().filter(is_all).chain(items.iter().filter(|step| !is_all(step))) {
            let Some(name) = step.get("name").and_then(Node::as_text) else { continue };
            let path = format!("environments.{}.steps.{name}", environment.key);
            let change = overlay(step, &path, notes);
            let named: Vec<String> = match name {
                "ALL" => steps.all().map(|(_, new)| new.to_owned()).collect(),
                name => vec![steps.name(name)],
            };
            for name in named {
                let fields = changes.entry(name).or_insert_with(|| json!({}));
                merge(fields, &change);
            }
        }
        for entry in environment.value.entries().iter().filter(|entry| &*entry.key != "steps") {
            notes.leave_out(&format!("environments.{}", environment.key), entry, "this import does not know the field");
        }
        changes.retain(|_, fields| fields.as_object().is_some_and(|fields| !fields.is_empty()));
        let name = environment.key.to_ascii_lowercase();
        overlays.extend((!changes.is_empty()).then(|| pair(&name, json!({ "steps": changes }))));
    }
    overlays
}

fn overlay(step: &Node, path: &str, notes: &mut Notes) -> Value {
    let mut fields = Map::new();
    for entry in step.entries() {
        match &*entry.key {
            "name" => {}
            "timeout_seconds" => {
                fields.extend(seconds(&entry.value.to_json()).map(|timeout| ("timeout".to_owned(), timeout.into())));
            }
            "retry" => fields.extend(retry(&entry.value, path, notes).map(|retry| ("retry".to_owned(), retry))),
            "handler" => {
                let settings = settings(step).map(|settings| escaped(settings.to_json()));
                fields.extend(settings.map(|settings| ("with".to_owned(), json!({ "settings": settings }))));
            }
            _ => notes.leave_out(path, entry, "this import does not know the field"),
        }
    }
    fields.into()
}

/// Merges maps by key; anything else is replaced.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
