//! Reading a template of Tasker.

use serde_json::{Value, json};

use super::steps::Steps;
use super::values::environments;
use super::write::{OutputValue, Pair, file, pair};
use crate::workflow::template::errors::{Errors, TemplateErrors};
use crate::workflow::template::names;
use crate::workflow::template::source::Source;
use crate::workflow::template::yaml::{self, Entry, Node};

/// A template of Tasker, as a template of Onward.
///
/// ```
/// use onward::workflow::template::{TaskerImport, TemplateFile};
///
/// let text = "
/// name: ship_order
/// namespace_name: shop
/// version: 1.0.0
/// steps:
///   - name: charge
///     handler: {callable: Payments.charge}
///   - name: ship
///     handler: {callable: Parcels.ship}
///     dependencies: [charge]
/// ";
/// let import = TaskerImport::read("order.yaml", text)?;
/// let file = TemplateFile::read("order.yaml", &import.yaml)?;
/// assert_eq!((file.template().name.as_str(), import.left_out.len()), ("shop/ship_order", 0));
/// # Ok::<(), onward::workflow::template::TemplateErrors>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskerImport {
    /// The file of the template. It may still have errors, such as a dependency that does not
    /// exist: [`TemplateFile::read`](crate::workflow::template::TemplateFile::read) reports them.
    pub yaml: String,
    /// The lines that are not carried over, in their order.
    pub left_out: Vec<TaskerLeftOut>,
}

/// A line of a template of Tasker that is not carried over, or has to be completed by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskerLeftOut {
    /// The line, from 1.
    pub line: u32,
    /// The field.
    pub field: String,
    /// The reason, and the remedy if there is one.
    pub reason: String,
}

impl TaskerImport {
    /// Reads a template of Tasker. `file` is its name, for errors.
    ///
    /// # Errors
    /// If the file is no YAML, with the places.
    pub fn read(file_name: &str, text: &str) -> Result<Self, TemplateErrors> {
        let source = Source::new(file_name, text);
        let mut errors = Errors::new(&source);
        let root = yaml::load(&mut errors);
        let root = errors.end(root)?;
        let mut notes = Notes::default();
        let pairs = template(&root, &mut notes);
        notes.0.sort_by_key(|note| note.line);
        Ok(Self { yaml: file(&pairs), left_out: notes.0 })
    }
}

/// The lines that are left out.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<TaskerLeftOut>);

impl Notes {
    /// Adds a line with the field of an entry. An entry without a value leaves nothing out.
    pub(super) fn leave_out(&mut self, path: &str, entry: &Entry, reason: impl Into<String>) {
        if !is_empty(&entry.value) {
            self.add(path, entry, reason);
        }
    }

    /// Adds a line with the field of an entry.
    pub(super) fn add(&mut self, path: &str, entry: &Entry, reason: impl Into<String>) {
        let field = if path.is_empty() { entry.key.to_string() } else { format!("{path}.{}", entry.key) };
        self.0.push(TaskerLeftOut { line: entry.span.start.line, field, reason: reason.into() });
    }
}

/// Returns true for null, and for lists and maps without content.
fn is_empty(node: &Node) -> bool {
    match node.to_json() {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Returns the entries of the new file.
fn template(root: &Node, notes: &mut Notes) -> Vec<Pair> {
    let mut pairs = vec![pair("name", name(root))];
    let steps = Steps::read(root);
    for entry in root.entries() {
        let value = entry.value.to_json();
        match &*entry.key {
            // A label is a text.
            "version" => pairs.push(pair("version", value.as_str().map_or_else(|| value.to_string(), str::to_owned))),
            "description" if !value.is_null() => pairs.push(pair("description", value)),
            "input_schema" if !value.is_null() => pairs.push(pair("input_schema", value)),
            "lifecycle" => pairs.extend(lifecycle(&entry.value, notes)),
            "name" | "namespace_name" | "steps" | "environments" => {}
            "metadata" => notes.leave_out("", entry, "a template has no such texts; keep them as comments"),
            "system_dependencies" if is_default(&value) => {}
            "system_dependencies" => notes.leave_out("", entry, "the handlers connect to the systems that they need"),
            "domain_events" => notes.leave_out("", entry, "events are described where a step publishes them"),
            _ => notes.leave_out("", entry, "this import does not know the field"),
        }
    }
    // The retries of Tasker for a step that has no `retry`.
    pairs.push(pair("defaults", json!({ "retry": { "attempts": 3, "first": "1s", "most": "30s" } })));
    let with_settings = root.get("environments").map(super::values::steps_with_settings).unwrap_or_default();
    pairs.push(pair("steps", OutputValue::Map(steps.write(&with_settings, notes))));
    if let Some(overlays) = root.get("environments") {
        let overlays = environments(overlays, &steps, notes);
        pairs.extend((!overlays.is_empty()).then(|| pair("environments", OutputValue::Map(overlays))));
    }
    pairs
}

fn name(root: &Node) -> String {
    let part = |key: &str| root.get(key).and_then(Node::as_text).map(names::like_template);
    match (part("namespace_name"), part("name")) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        (_, Some(name)) => name,
        _ => "workflow".to_owned(),
    }
}

fn is_default(dependencies: &Value) -> bool {
    let secondary = dependencies.get("secondary").and_then(Value::as_array);
    dependencies.get("primary").is_none_or(|primary| primary == "default") && secondary.is_none_or(Vec::is_empty)
}

fn lifecycle(lifecycle: &Node, notes: &mut Notes) -> Option<Pair> {
    let mut timeout = None;
    for entry in lifecycle.entries() {
        match (&*entry.key, entry.value.to_json().as_u64()) {
            ("max_duration_minutes", Some(minutes)) => timeout = Some(pair("timeout", format!("{minutes}m"))),
            _ => notes.leave_out(
                "lifecycle",
                entry,
                "nothing sweeps a run that waits; bound it by `timeout` and `deadline`",
            ),
        }
    }
    timeout
}
