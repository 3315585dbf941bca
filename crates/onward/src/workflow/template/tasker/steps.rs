//! The steps of a template of Tasker.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::import::Notes;
use super::values::{escaped, events, retry, seconds};
use super::write::{OutputValue, Pair, pair};
use crate::workflow::template::names;
use crate::workflow::template::yaml::{Entry, Node};

/// The steps of a file.
pub(super) struct Steps<'f> {
    steps: Vec<Step<'f>>,
    /// The new names by the old ones.
    names: BTreeMap<&'f str, String>,
}

/// A step of a file.
struct Step<'f> {
    node: &'f Node,
    name: &'f str,
    kind: &'f str,
    dependencies: Vec<&'f str>,
}

impl<'f> Steps<'f> {
    /// Reads the names, kinds and dependencies.
    pub(super) fn read(root: &'f Node) -> Self {
        let items = root.get("steps").map_or(&[][..], Node::items);
        let text = |node: &'f Node, keys: [&str; 2]| keys.into_iter().find_map(|key| node.get(key)?.as_text());
        let steps: Vec<Step<'f>> = items.iter().filter_map(|node| Step::read(node, text)).collect();
        let (mut names, mut taken) = (BTreeMap::new(), BTreeSet::new());
        for step in &steps {
            let mut name = names::like_step(step.name);
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            names.insert(step.name, name);
        }
        Self { steps, names }
    }

    /// Returns the new name of a step. Reading the new file reports a step that does not exist.
    pub(super) fn name(&self, old: &str) -> String {
        self.names.get(old).cloned().unwrap_or_else(|| names::like_step(old))
    }

    /// Returns the new names of all steps.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(old, new)| (*old, new.as_str()))
    }

    fn kind(&self, name: &str) -> &str {
        self.steps.iter().find(|step| step.name == name).map_or("", |step| step.kind)
    }

    /// Returns the old names of the steps that a decision can choose: its direct dependents that
    /// are no convergence.
    fn chosen_by(&self, decision: &str) -> impl Iterator<Item = &'f str> {
        let is_chosen =
            move |step: &&Step<'f>| step.kind != "deferred_convergence" && step.dependencies.contains(&decision);
        let chosen: Vec<&'f str> = self.steps.iter().filter(is_chosen).map(|step| step.name).collect();
        chosen.into_iter()
    }

    /// Returns the old names of all steps before a step.
    fn ancestors(&self, step: &Step<'f>) -> BTreeSet<&'f str> {
        let (mut found, mut open) = (BTreeSet::new(), step.dependencies.clone());
        while let Some(name) = open.pop() {
            if found.insert(name) {
                let before = self.steps.iter().filter(|step| step.name == name);
                open.extend(before.flat_map(|step| step.dependencies.iter().copied()));
            }
        }
        found
    }

    /// Returns the entries of the new file. `with_settings` has the steps whose settings an
    /// environment changes.
    pub(super) fn write(&self, with_settings: &BTreeSet<String>, notes: &mut Notes) -> Vec<Pair> {
        self.steps.iter().map(|step| self.step(step, with_settings, notes)).collect()
    }

    fn step(&self, step: &Step<'f>, with_settings: &BTreeSet<String>, notes: &mut Notes) -> Pair {
        let path = format!("steps.{}", step.name);
        let is_changed = with_settings.contains(step.name) || with_settings.contains("ALL");
        let mut pairs = self.task(step, &path, is_changed, notes);
        pairs.extend(self.order(step, &path, notes));
        let mut comment = None;
        for entry in step.node.entries() {
            let value = entry.value.to_json();
            match &*entry.key {
                "description" => comment = value.as_str().map(str::to_owned),
                "retry" => pairs.extend(retry(&entry.value, &path, notes).map(|retry| pair("retry", retry))),
                "timeout_seconds" => pairs.extend(seconds(&value).map(|timeout| pair("timeout", timeout))),
                "publishes_events" => pairs.extend(events(&entry.value, &path, notes)),
                "result_schema" if !value.is_null() => pairs.push(pair("result_schema", value)),
                "name" | "handler" | "type" | "step_type" | "dependencies" | "depends_on" | "batch_config" => {}
                "system_dependency" => {
                    notes.leave_out(&path, entry, "the handler connects to the system that it needs")
                }
                "lifecycle" => notes.leave_out(
                    &path,
                    entry,
                    "nothing sweeps a step that waits; bound it by `timeout` and `deadline`",
                ),
                _ => notes.leave_out(&path, entry, "this import does not know the field"),
            }
        }
        Pair { key: self.name(step.name), comment, value: OutputValue::Map(pairs) }
    }

    /// Returns `task` and `with`.
    fn task(&self, step: &Step<'f>, path: &str, is_changed: bool, notes: &mut Notes) -> Vec<Pair> {
        let handler = step.node.get("handler");
        let callable = handler.and_then(|handler| handler.get("callable")?.as_text()).unwrap_or(step.name);
        let mut more = Vec::new();
        let mut settings = json!({});
        for entry in handler.map_or(&[][..], Node::entries) {
            match &*entry.key {
                "callable" => {}
                "initialization" => settings = escaped(entry.value.to_json()),
                "method" if entry.value.as_text().is_some() => more.push(pair("method", entry.value.to_json())),
                _ => notes.leave_out(&format!("{path}.handler"), entry, "a worker registers its handlers by kind"),
            }
        }
        let is_batch = step.kind == "batch_worker";
        let has_settings = settings.as_object().is_some_and(|settings| !settings.is_empty());
        let mut pairs = vec![pair("task", callable.replace("::", "."))];
        if !(has_settings || is_changed || is_batch || !more.is_empty()) {
            // Without `with` the payload has the input and the results of all steps before.
            return pairs;
        }
        let result = |old: &&str| {
            let name = self.name(old);
            (name.clone(), Value::String(format!("${{{{ steps.{name}.result }}}}")))
        };
        let results: serde_json::Map<String, Value> = self.ancestors(step).iter().map(result).collect();
        let mut with = vec![pair("input", "${{ input }}"), pair("results", Value::Object(results))];
        with.extend(is_batch.then(|| pair("cursor", "${{ item }}")));
        with.extend(more);
        with.push(pair("settings", settings));
        pairs.push(pair("with", OutputValue::Map(with)));
        pairs
    }

    /// Returns `depends_on`, `chooses`, and `each` with what belongs to it.
    fn order(&self, step: &Step<'f>, path: &str, notes: &mut Notes) -> Vec<Pair> {
        let is_convergence = step.kind == "deferred_convergence";
        // A chosen step depends on its chooser implicitly.
        let before = step.dependencies.iter().filter(|name| is_convergence || self.kind(name) != "decision");
        let before: Vec<Value> = before.map(|name| self.name(name).into()).collect();
        let mut pairs = Vec::new();
        pairs.extend((!before.is_empty()).then(|| pair("depends_on", Value::Array(before))));
        match step.kind {
            "decision" => {
                let chosen: Vec<Value> = self.chosen_by(step.name).map(|name| self.name(name).into()).collect();
                pairs.push(pair("chooses", Value::Array(chosen)));
                note_kind(
                    step,
                    path,
                    notes,
                    "its handler has to return the names of the chosen steps, as a list or as `chosen` of a map",
                );
            }
            "batch_worker" => pairs.extend(self.batch(step, path, notes)),
            "" | "standard" | "deferred_convergence" | "batchable" => {}
            _ => note_kind(step, path, notes, "this import does not know the type; the step is a task"),
        }
        pairs
    }

    fn batch(&self, step: &Step<'f>, path: &str, notes: &mut Notes) -> Vec<Pair> {
        let source = step.dependencies.iter().find(|name| self.kind(name) == "batchable").or(step.dependencies.first());
        let planner = source.and_then(|name| self.steps.iter().find(|step| step.name == *name));
        let source = source.map_or_else(|| "step".to_owned(), |name| self.name(name));
        let mut pairs = vec![pair("each", format!("steps.{source}.result.cursor_configs"))];
        let configuration = step.node.get("batch_config").or_else(|| planner?.node.get("batch_config"));
        for entry in configuration.map_or(&[][..], Node::entries) {
            let value = entry.value.to_json();
            match (&*entry.key, value.as_str()) {
                ("parallelism", _) => pairs.push(pair("parallel", value)),
                ("failure_strategy", Some("fail_fast")) => pairs.push(pair("tolerate", json!(0))),
                ("failure_strategy", Some("continue_on_failure" | "isolate")) => pairs.push(pair("tolerate", "all")),
                ("worker_template", _) => {}
                _ => notes.leave_out(
                    &format!("{path}.batch_config"),
                    entry,
                    format!("step `{source}` decides it, with the `cursor_configs` that it returns"),
                ),
            }
        }
        pairs
    }
}

fn note_kind(step: &Step<'_>, path: &str, notes: &mut Notes, reason: &str) {
    if let Some(entry) = ["type", "step_type"].into_iter().find_map(|key| step.node.entry(key)) {
        let entry: &Entry = entry;
        notes.add(path, entry, reason);
    }
}

impl<'f> Step<'f> {
    fn read(node: &'f Node, text: impl Fn(&'f Node, [&str; 2]) -> Option<&'f str>) -> Option<Self> {
        let name = text(node, ["name", "name"])?;
        let kind = text(node, ["type", "step_type"]).unwrap_or_default();
        let dependencies = node.get("dependencies").or_else(|| node.get("depends_on"));
        let dependencies = dependencies.map_or(&[][..], Node::items).iter().filter_map(Node::as_text).collect();
        Some(Self { node, name, kind, dependencies })
    }
}
