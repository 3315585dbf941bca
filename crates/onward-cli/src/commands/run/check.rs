//! `onward run --check`: the plan, without a run.

use std::sync::Arc;

use onward::Engine;
use onward::store::MemoryStore;
use onward::workflow::template::{Condition, Template, TemplateFile};
use onward_store::Store;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::start::start_of;
use crate::exit_code::ExitCode;
use crate::location::Location;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line};
use crate::store_file;

/// Checks everything that a start checks, and prints the plan. Templates of `workflow` steps come
/// from the store, if there is one.
pub(super) async fn check(
    options: &GlobalOptions,
    file: TemplateFile,
    arguments: &Arguments,
    input: Option<Value>,
) -> anyhow::Result<ExitCode> {
    let store: Arc<dyn Store> = match &options.store {
        Location::File(path) if !path.exists() => Arc::new(MemoryStore::new()),
        _ => match store_file::open_to_read(options).await {
            Err(error) if is_missing(&error) => Arc::new(MemoryStore::new()),
            opened => opened?,
        },
    };
    let engine = Engine::builder().store(store).open().await?;
    let template = file.template();
    let plan = plan(template);
    let (name, label, hash) = (template.name.clone(), file.label(), file.hash());
    start_of(&engine, file, arguments, input).check().await?;
    if options.json {
        let steps: Vec<&str> = plan.iter().map(|(step, _)| step.as_str()).collect();
        let before = |(step, before): &(String, Vec<String>)| (step.clone(), json!(before));
        let depends_on: Map<String, Value> = plan.iter().map(before).collect();
        print_json(
            &json!({ "workflow": name, "version": label, "hash": hash, "steps": steps, "depends_on": depends_on }),
        )?;
    } else {
        print_line(format_args!("{name} {label}: {}", plan_text(&plan)))?;
    }
    Ok(ExitCode::Done)
}

/// Returns true if there is no store.
fn is_missing(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<onward_store::Error>().is_some_and(onward_store::Error::is_not_found))
}

/// Returns the steps, each after those that it depends on, with what it needs of these.
fn plan(template: &Template) -> Vec<(String, Vec<String>)> {
    let name = |step: usize| template.steps.get(step).map_or("?", |step| step.name.as_str());
    let order = template.graph.order().iter().filter_map(|step| template.steps.get(*step));
    let needs = order.map(|step| {
        let before = step.depends_on.iter().map(|before| match before.condition {
            Condition::Completed => name(before.step).to_owned(),
            Condition::Failed => format!("{} (failed)", name(before.step)),
            Condition::Ended => format!("{} (ended)", name(before.step)),
            Condition::Chosen => format!("{} (chooses it)", name(before.step)),
        });
        (step.name.clone(), before.collect())
    });
    needs.collect()
}

/// Returns a chain on one line, and any other graph with a line for each step.
fn plan_text(plan: &[(String, Vec<String>)]) -> String {
    let before = std::iter::once(None).chain(plan.iter().map(|(step, _)| Some(step)));
    let is_chain = plan.iter().zip(before).all(|((_, needs), before)| needs.iter().eq(before));
    if is_chain {
        return plan.iter().map(|(step, _)| step.as_str()).collect::<Vec<_>>().join(" → ");
    }
    let line = |(step, needs): &(String, Vec<String>)| match &needs[..] {
        [] => format!("\n  {step}"),
        needs => format!("\n  {step} after {}", needs.join(", ")),
    };
    plan.iter().map(line).collect()
}
