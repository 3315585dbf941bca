//! Fields that require or exclude each other.

use super::super::bounds::ERRORS_REPORTED;
use super::super::errors::{Errors, Fault};
use super::super::fields::{Field, FieldCondition};
use super::super::source::Span;
use super::super::yaml::Node;
use super::uses::MapContext;
use crate::workflow::nearest::nearest;

/// Checks which fields of a map may be combined. Fields in `meant` count as present: they were
/// misspelt, which is reported already.
pub(super) fn check(node: &Node, at: &MapContext, meant: &[&str], errors: &mut Errors<'_>) {
    let fields = at.place.fields();
    for field in fields.iter().filter(|field| field.is_required) {
        if node.get(field.name).is_none() && !meant.contains(&field.name) {
            errors.add(node.span, || Fault::new(format!("{at} has no `{}`", field.name)));
        }
    }
    for entry in node.entries() {
        let Some(field) = at.place.field(&entry.key) else { continue };
        if let Some(other) = field.not_beside.iter().find(|other| is_present(node, other)) {
            errors.add(entry.span, || stands_beside(field, other, at));
        }
        let is_met = |needed: &FieldCondition| is_present(node, needed) || meant.contains(&needed.field);
        if !field.needs.is_empty() && !field.needs.iter().any(is_met) {
            errors.add(entry.span, || stands_alone(field, at));
        }
    }
}

fn is_present(node: &Node, beside: &FieldCondition) -> bool {
    let Some(value) = node.get(beside.field) else { return false };
    beside.values.is_empty() || value.as_text().is_some_and(|value| beside.values.contains(&value))
}

fn stands_beside(field: &Field, other: &FieldCondition, at: &MapContext) -> Fault {
    Fault::new(format!("`{}` does not stand beside {} in {at}; leave one of them out", field.name, shown(other)))
}

fn stands_alone(field: &Field, at: &MapContext) -> Fault {
    let needed = list_of(field.needs.iter().map(shown), "or");
    Fault::new(format!("`{}` has no effect without {needed} in {at}", field.name))
}

fn shown(beside: &FieldCondition) -> String {
    match beside.values {
        [] => format!("`{}`", beside.field),
        values => list(values.iter().map(|value| format!("{}: {value}", beside.field)), "or"),
    }
}

/// Checks that a step or an undo has exactly one kind.
pub(super) fn check_kind(span: Span, node: &Node, at: &MapContext, errors: &mut Errors<'_>) {
    let kinds = at.place.kinds();
    let mut present = node.entries().iter().filter(|entry| kinds.contains(&&*entry.key));
    match (present.next(), present.next()) {
        (Some(first), Some(second)) => errors.add(second.span, || {
            Fault::new(format!("{at} has both `{}` and `{}`; it has exactly one kind", first.key, second.key))
        }),
        (None, _) if errors.is_full() || !is_misspelt(node, at) => {
            errors.add(span, || Fault::new(format!("{at} has no kind; give it one of {}", list(kinds, "or"))))
        }
        _ => {}
    }
}

fn is_misspelt(node: &Node, at: &MapContext) -> bool {
    let fields = || at.place.fields().iter().map(|field| field.name);
    let unknown = node.entries().iter().filter(|entry| at.place.field(&entry.key).is_none());
    let unknown = unknown.take(ERRORS_REPORTED);
    unknown.filter_map(|entry| nearest(&entry.key, fields())).any(|meant| at.place.kinds().contains(&meant))
}

/// Writes names as a list, each in backticks.
pub(super) fn list(names: impl IntoIterator<Item = impl std::fmt::Display>, last: &str) -> String {
    list_of(names.into_iter().map(|name| format!("`{name}`")), last)
}

fn list_of(parts: impl Iterator<Item = String>, last: &str) -> String {
    let mut parts: Vec<String> = parts.collect();
    match parts.pop() {
        None => String::new(),
        Some(only) if parts.is_empty() => only,
        Some(end) => format!("{} {last} {end}", parts.join(", ")),
    }
}
