//! A file of Rust for a template.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context as _;
use onward::workflow::template::{StepAction, TemplateFile, WorkKind};
use serde_json::Value;

use super::names::snake;
use super::payload::Schemas;
use super::rust_types::{RustTypes, docs};

/// A kind of tasks, with the schemas of what all its steps pass and return.
struct Kind<'t> {
    payload: Value,
    result: Value,
    /// The steps whose tasks it is, such as `ship` or `undo of ship`.
    steps: Vec<String>,
    name: &'t str,
}

/// A handler as the file has it.
struct Handler {
    function: String,
    payload: String,
    result: String,
    kind: String,
}

/// Returns the code for a template: types, a trait with a function for each kind of task, a
/// function that registers the handlers, and one that starts a run.
pub(super) fn rust_file(file: &TemplateFile) -> anyhow::Result<String> {
    let template = file.template();
    let canonical: Value = serde_json::from_str(file.canonical()).context("the canonical form cannot be read")?;
    let schemas = Schemas::new(template, &canonical);
    let mut types = RustTypes::default();
    let name = template.name.rsplit('/').next().unwrap_or_default();
    let handlers_name = types.take(&format!("{name} handlers"));
    let input = types.of(&schemas.input(), &format!("{name} input"), &format!("The input of `{}`.", template.name));
    if let Some(schema) = &template.result_schema {
        types.own(schema, &format!("{name} result"), &format!("The result of `{}`.", template.name));
    }
    let kinds = kinds(file, &schemas);
    // Results first: payloads refer to them, and have their names then.
    let results: Vec<String> = kinds.values().map(|kind| kind.result_type(&mut types)).collect();
    let handlers: Vec<Handler> =
        kinds.values().zip(results).map(|(kind, result)| kind.handler(result, &mut types)).collect();
    let mut body = types.declarations();
    if !handlers.is_empty() {
        body.push_str(&tasks(&handlers));
        body.push_str(&handlers_trait(&handlers_name, &template.name, &handlers));
        body.push_str(&register(&handlers_name, &handlers));
    }
    body.push_str(&start(&template.name, &input));
    Ok(format!("{}{body}", head(file, &body)))
}

fn start(workflow: &str, input: &str) -> String {
    format!(
        "\n/// Starts a run of `{workflow}`, whose template was added to the engine or is stored.\n\
         pub fn start(engine: &Engine, input: &{input}) -> RunStart {{\n    \
         engine.start_run({workflow:?}).input(input)\n}}\n"
    )
}

/// Returns the kinds of tasks of the steps and undos, by name.
fn kinds<'t>(file: &'t TemplateFile, schemas: &Schemas<'t>) -> BTreeMap<&'t str, Kind<'t>> {
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

    fn result_type(&self, types: &mut RustTypes) -> String {
        let doc = format!("The result of `{}`: {}.", self.name, self.steps.join(", "));
        types.of(&self.result, &format!("{} result", self.name), &doc)
    }

    fn handler(&self, result: String, types: &mut RustTypes) -> Handler {
        let doc = format!("The payload of `{}`: {}.", self.name, self.steps.join(", "));
        let payload = types.own(&self.payload, self.name, &doc);
        Handler { function: snake(self.name), payload, result, kind: self.name.to_owned() }
    }
}

/// Returns the first lines of a file: its documentation, and the imports that its body needs.
fn head(file: &TemplateFile, body: &str) -> String {
    let template = file.template();
    let mut head = format!("//! Types and handlers of the workflow `{}`", template.name);
    if let Some(version) = &template.version {
        let _ = write!(head, ", version {version}");
    }
    head.push_str(".\n//! Generated by `onward workflow generate`.\n\n");
    let has_handlers = body.contains("impl Task for");
    if uses(body, "BTreeMap") {
        head.push_str("use std::collections::BTreeMap;\n");
    }
    if has_handlers {
        head.push_str("use std::future::Future;\nuse std::sync::Arc;\n\n");
    }
    head.push_str("use onward::workflow::RunStart;\n");
    head.push_str(if has_handlers {
        "use onward::{Context, Engine, Failure, Task};\n"
    } else {
        "use onward::Engine;\n"
    });
    if uses(body, "Serialize") {
        head.push_str("use serde::{Deserialize, Serialize};\n");
    }
    head.push_str(if uses(body, "Value") { "use serde_json::Value;\n\n" } else { "\n" });
    head
}

/// Returns true if code has a word outside of its documentation.
fn uses(code: &str, word: &str) -> bool {
    let code = code.lines().filter(|line| !line.trim_start().starts_with("///"));
    code.flat_map(|line| line.split(|character: char| !character.is_alphanumeric())).any(|one| one == word)
}

fn tasks(handlers: &[Handler]) -> String {
    let task = |handler: &Handler| {
        let Handler { payload, result, kind, .. } = handler;
        format!(
            "\nimpl Task for {payload} {{\n    const KIND: &'static str = {kind:?};\n    type Output = {result};\n}}\n"
        )
    };
    handlers.iter().map(task).collect()
}

fn handlers_trait(name: &str, workflow: &str, handlers: &[Handler]) -> String {
    let mut text =
        format!("\n{}pub trait {name}: Send + Sync + 'static {{", docs("", &format!("The handlers of `{workflow}`.")));
    for Handler { function, payload, result, kind } in handlers {
        let _ = write!(
            text,
            "\n    /// Handles the tasks of kind `{kind}`.\n    fn {function}(\n        &self,\n        task: {payload},\n        \
             context: Context,\n    ) -> impl Future<Output = Result<{result}, Failure>> + Send;\n"
        );
    }
    text.push_str("}\n");
    text
}

fn register(name: &str, handlers: &[Handler]) -> String {
    let mut text = format!(
        "\n/// Registers the handlers with an engine.\npub fn register<H: {name}>(engine: &Engine, handlers: H) {{\n    \
         let handlers = Arc::new(handlers);\n"
    );
    for Handler { function, payload, .. } in handlers {
        let _ = write!(
            text,
            "    let shared = Arc::clone(&handlers);\n    engine.register(move |task: {payload}, context| {{\n        \
             let handlers = Arc::clone(&shared);\n        async move {{ handlers.{function}(task, context).await }}\n    }});\n"
        );
    }
    text.push_str("}\n");
    text
}
