//! The normal form of templates: a map with a name, and with its steps in a map.

use std::collections::HashSet;
use std::sync::Arc;

use super::errors::{Errors, Fault, shown};
use super::names;
use super::source::Span;
use super::yaml::{Entry, Node, Value};

/// Returns the template as a map with `name`, and with `steps` as a map if they are a list.
pub(super) fn normalise(root: Node, errors: &mut Errors<'_>) -> Option<Node> {
    let mut entries = match &root.value {
        Value::Map(entries) => entries.to_vec(),
        Value::List(_) => vec![Entry { key: "steps".into(), span: root.span, value: root.clone() }],
        Value::Broken => return None,
        other => {
            errors.add_message(root.span, format!("a template is a map or a list of steps, not {}", other.kind()));
            return None;
        }
    };
    for entry in entries.iter_mut().filter(|entry| &*entry.key == "steps") {
        if let Value::List(items) = &entry.value.value {
            let steps = listed(items, errors);
            // Each item has an error of its own, so the lack of steps is not reported too.
            let all_broken = steps.is_empty() && !items.is_empty();
            let value = if all_broken { Value::Broken } else { Value::Map(Arc::new(steps)) };
            entry.value = Node::new(entry.value.span, value);
        }
    }
    if !entries.iter().any(|entry| &*entry.key == "name") {
        entries.push(Entry { key: "name".into(), span: Span::START, value: name_of_file(errors) });
    }
    Some(Node::new(root.span, Value::Map(Arc::new(entries))))
}

/// Returns the name that a file without `name` has.
fn name_of_file(errors: &mut Errors<'_>) -> Node {
    let file = errors.source().name().clone();
    let file = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let endings = [".yaml", ".yml", ".json"];
    let stem = endings.iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(file);
    if names::template(stem).is_ok() {
        return Node::text(Span::START, stem);
    }
    errors.add(Span::START, || {
        let fault = Fault::new(format!("the file's name `{}` is no name of a template", shown(stem)));
        fault.fix("add one", format!("name: {}", names::like_template(stem)))
    });
    Node::new(Span::START, Value::Broken)
}

/// Returns the steps of a list by name. A step without `depends_on` depends on the one before it.
fn listed(items: &[Node], errors: &mut Errors<'_>) -> Vec<Entry> {
    let mut steps: Vec<Entry> = Vec::with_capacity(items.len());
    let mut known = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let Some(mut step) = listed_step(index, item, errors) else { continue };
        if let Some(before) = steps.last() {
            depend(&mut step.value, &before.key);
        }
        if known.insert(step.key.clone()) {
            steps.push(step);
        } else {
            errors.add_message(step.span, format!("two steps are called `{}`; a name stands once", shown(&step.key)));
        }
    }
    steps
}

fn listed_step(index: usize, item: &Node, errors: &mut Errors<'_>) -> Option<Entry> {
    if let Some(command) = split_command(item) {
        errors.add(item.span, || {
            let fault = Fault::new("YAML reads a command with `: ` in it as a map");
            fault.fix("put the command in quotes", format!("- '{}'", command.replace('\'', "''")))
        });
        return None;
    }
    let (named, entries) = match &item.value {
        Value::Text(_) => {
            let script = Entry { key: "run".into(), span: item.span, value: item.clone() };
            (None, vec![script])
        }
        Value::Map(entries) => {
            let (named, others): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(|entry| &*entry.key == "name");
            (named.into_iter().next().map(|entry| entry.value), others)
        }
        Value::Broken => return None,
        other => {
            errors.add_message(item.span, format!("a step is a script or a map, not {}", other.kind()));
            return None;
        }
    };
    let (key, span) = match named {
        None => (format!("step_{}", index + 1).into(), item.span),
        Some(Node { span, value: Value::Text(name) }) => (name, span),
        Some(Node { span, value }) => {
            errors.add_message(span, format!("the name of a step is a text, not {}", value.kind()));
            return None;
        }
    };
    Some(Entry { key, span, value: Node::new(item.span, Value::Map(Arc::new(entries))) })
}

/// Returns the command that YAML has split at its `: `, which shows in a key with a space: no field
/// has one.
fn split_command(item: &Node) -> Option<String> {
    let Value::Map(entries) = &item.value else { return None };
    match &entries[..] {
        [Entry { key, value: Node { value: Value::Text(rest), .. }, .. }] if key.contains(' ') => {
            Some(format!("{key}: {rest}"))
        }
        _ => None,
    }
}

/// Adds `depends_on` to a step that has none.
fn depend(step: &mut Node, before: &str) {
    let Value::Map(entries) = &mut step.value else { return };
    if entries.iter().any(|entry| &*entry.key == "depends_on") {
        return;
    }
    let value = Node::new(step.span, Value::List(Arc::new(vec![Node::text(step.span, before)])));
    Arc::make_mut(entries).push(Entry { key: "depends_on".into(), span: step.span, value });
}
