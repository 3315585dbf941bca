//! The kinds of tasks of a template, with their schemas.

use std::collections::BTreeMap;

use onward::workflow::template::{StepAction, TemplateFile, WorkKind};
use serde_json::Value;

use super::payload::Schemas;

/// A kind of tasks, with the schemas of what all its steps pass and return.
pub(super) struct Kind<'t> {
    pub(super) payload: Value,
    pub(super) result: Value,
    /// The steps whose tasks it is, such as `ship` or `undo of ship`.
    steps: Vec<String>,
    pub(super) name: &'t str,
}

impl Kind<'_> {
    /// Adds a step. What its schemas and the known ones do not have in common is any value.
    fn add(&mut self, payload: Value, result: Value, step: String) {
        for (known, schema) in [(&mut self.payload, payload), (&mut self.result, result)] {
            if *known != schema {
                *known = Value::Bool(true);
            }
        }
        self.steps.push(step);
    }

    /// Returns the documentation of its payload or its result, which `part` names.
    pub(super) fn doc(&self, part: &str) -> String {
        format!("The {part} of `{}`: {}.", self.name, self.steps.join(", "))
    }
}

/// Returns the kinds of tasks of the steps and undos, by name.
pub(super) fn kinds<'t>(file: &'t TemplateFile, schemas: &Schemas<'t>) -> BTreeMap<&'t str, Kind<'t>> {
    let mut kinds: BTreeMap<&str, Kind<'_>> = BTreeMap::new();
    for step in &file.template().steps {
        let StepAction::Work(work) = &step.action else { continue };
        let undo = work.undo.as_ref().map(|undo| (&undo.kind, true));
        for (kind, is_undo) in std::iter::once((&work.kind, false)).chain(undo) {
            let WorkKind::Task { kind } = kind else { continue };
            let payload = schemas.payload(step, is_undo);
            let result = if is_undo { Value::Bool(true) } else { schemas.result_of_one(step) };
            let shown = if is_undo { format!("the undo of `{}`", step.name) } else { format!("`{}`", step.name) };
            match kinds.get_mut(kind.as_str()) {
                Some(known) => known.add(payload, result, shown),
                None => {
                    kinds.insert(kind, Kind { payload, result, steps: vec![shown], name: kind });
                }
            }
        }
    }
    kinds
}

/// Returns the title of a generated file: its template, and the version if there is one.
pub(super) fn title(file: &TemplateFile) -> String {
    let template = file.template();
    let version = template.version.as_ref().map(|version| format!(", version {version}"));
    format!("Types and handlers of the workflow `{}`{}.", template.name, version.unwrap_or_default())
}

/// Returns true if code has a word outside of its comments, which begin with `comment`.
pub(super) fn uses(code: &str, word: &str, comment: &str) -> bool {
    let code = code.lines().filter(|line| !line.trim_start().starts_with(comment));
    code.flat_map(|line| line.split(|character: char| !character.is_alphanumeric())).any(|one| one == word)
}
