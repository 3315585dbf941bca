//! Changes to a template by an environment.

use std::collections::HashMap;
use std::sync::Arc;

use super::errors::{Errors, Fault, shown};
use super::fields::Place;
use super::yaml::{Entry, Node, Value};
use crate::workflow::nearest::nearest;

/// Returns a template as it is in an environment: maps are merged by key, other values are
/// replaced, and null removes. Returns `None` if the change is invalid.
pub(super) fn apply(root: &Node, environment: &Entry, errors: &mut Errors<'_>) -> Option<Node> {
    let overlay = &environment.value;
    let Value::Map(_) = &overlay.value else {
        if !matches!(overlay.value, Value::Broken) {
            let message = format!("environment `{}` is a map, not {}", shown(&environment.key), overlay.value.kind());
            errors.add_message(environment.span, message);
        }
        return None;
    };
    let before = errors.found();
    fixed(overlay, errors);
    steps(root, overlay, errors);
    let merged = merge(root, overlay, errors);
    (errors.found() == before).then_some(merged)
}

/// Reports fields that are the same in every environment.
fn fixed(overlay: &Node, errors: &mut Errors<'_>) {
    for entry in overlay.entries() {
        if Place::Run.field(&entry.key).is_some_and(|field| field.is_fixed) {
            errors.add_message(entry.span, format!("an environment cannot change `{}`", entry.key));
        }
    }
}

/// Reports steps that an environment adds or removes.
fn steps(root: &Node, overlay: &Node, errors: &mut Errors<'_>) {
    let Some(changed) = overlay.entry("steps") else { return };
    if !matches!(changed.value.value, Value::Map(_) | Value::Broken) {
        errors.add_message(changed.value.span, "an environment changes steps by name, so its `steps` is a map");
    }
    let known = || root.get("steps").map(Node::entries).unwrap_or_default().iter().map(|step| &*step.key);
    for step in changed.value.entries() {
        let name = shown(&step.key);
        if !known().any(|known| *known == *step.key) {
            let fault = || Fault::new(format!("an environment cannot add steps, and there is no step `{name}`"));
            errors.add(step.span, || fault().mean(nearest(&step.key, known())));
        } else if matches!(step.value.value, Value::Null) {
            errors
                .add_message(step.span, format!("an environment cannot remove the step `{name}`; skip it: if: false"));
        }
    }
}

fn merge(base: &Node, overlay: &Node, errors: &mut Errors<'_>) -> Node {
    let (Value::Map(_), Value::Map(_)) = (&base.value, &overlay.value) else { return overlay.clone() };
    let changes: HashMap<&str, &Entry> = overlay.entries().iter().map(|entry| (&*entry.key, entry)).collect();
    let mut merged = Vec::with_capacity(base.entries().len());
    for entry in base.entries() {
        match changes.get(&*entry.key) {
            None => merged.push(entry.clone()),
            Some(change) if matches!(change.value.value, Value::Null) => {}
            Some(change) => {
                merged.push(Entry { value: merge(&entry.value, &change.value, errors), ..entry.clone() });
            }
        }
    }
    merged.extend(added(base, overlay, errors));
    Node::new(base.span, Value::Map(Arc::new(merged)))
}

/// Returns the entries that only the overlay has.
fn added(base: &Node, overlay: &Node, errors: &mut Errors<'_>) -> Vec<Entry> {
    let known: HashMap<&str, &Entry> = base.entries().iter().map(|entry| (&*entry.key, entry)).collect();
    let mut added = Vec::new();
    for entry in overlay.entries().iter().filter(|entry| !known.contains_key(&*entry.key)) {
        if matches!(entry.value.value, Value::Null) {
            let key = shown(&entry.key);
            let fault = || Fault::new(format!("`{key}: null` removes nothing, because there is no `{key}`"));
            errors.add(entry.span, || fault().mean(nearest(&entry.key, known.keys().copied())));
        } else {
            added.push(entry.clone());
        }
    }
    added
}
