//! Imports of templates of Tasker.

use super::TaskerImport;
use crate::workflow::template::{Delivery, Items, PublishedEnd, StepAction, TemplateFile, Tolerate, Work};

/// Imports a template, which must have no errors then. Returns it with the lines left out.
fn import(text: &str) -> (TemplateFile, Vec<(u32, String)>) {
    let import = TaskerImport::read("order.yaml", text).unwrap();
    let file = TemplateFile::read("order.yaml", &import.yaml);
    let file = file.unwrap_or_else(|errors| panic!("{errors}\n{}", import.yaml));
    (file, import.left_out.into_iter().map(|note| (note.line, note.field)).collect())
}

fn work<'f>(file: &'f TemplateFile, step: &str) -> &'f Work {
    match &file.template().step(step).unwrap().action {
        StepAction::Work(work) => work,
        other => panic!("{other:?}"),
    }
}

fn before(file: &TemplateFile, step: &str) -> Vec<String> {
    let template = file.template();
    let step = template.step(step).unwrap();
    step.depends_on.iter().map(|before| template.steps[before.step].name.clone()).collect()
}

/// Shows: W13
#[test]
fn names_dependencies_and_retries_are_carried_over() {
    let (file, left_out) = import(
        "name: Ship_Order
namespace_name: shop
version: 1.0.0
description: Ships an order
input_schema: {type: object, required: [id]}
system_dependencies: {primary: default, secondary: []}
domain_events: []
steps:
  - name: charge
    description: Takes the money
    handler: {callable: 'Payments::Charge', initialization: {currency: '${{ EUR }}'}}
    system_dependency:
    dependencies: []
    retry: {retryable: true, max_attempts: 4, backoff: linear, backoff_base_ms: 1500, max_backoff_ms: 60000}
    timeout_seconds: 30
  - name: Ship-It
    handler: {callable: parcels.ship}
    dependencies: [charge]
    retry: {retryable: false}
",
    );
    assert_eq!(left_out, []);
    let template = file.template();
    assert_eq!((template.name.as_str(), template.version.as_deref()), ("shop/ship_order", Some("1.0.0")));
    assert_eq!(before(&file, "ship_it"), ["charge"]);
    let attempts = |step: &str| work(&file, step).retry.as_ref().map(|retry| retry.attempts);
    assert_eq!((attempts("charge"), attempts("ship_it")), (Some(4), Some(1)));
    assert!(work(&file, "charge").with.is_some() && work(&file, "ship_it").with.is_none());
    assert!(file.canonical().contains("\"task\":\"Payments.Charge\""), "{}", file.canonical());
}

/// Shows: W13
#[test]
fn a_decision_chooses_among_its_dependents_and_a_convergence_is_a_step() {
    let (file, left_out) = import(
        "name: approval
namespace_name: money
steps:
  - {name: check, handler: {callable: check}}
  - name: route
    type: decision
    handler: {callable: route}
    dependencies: [check]
  - {name: small, handler: {callable: small}, dependencies: [route]}
  - {name: large, handler: {callable: large}, dependencies: [route]}
  - {name: end, type: deferred_convergence, handler: {callable: end}, dependencies: [small, large]}
",
    );
    let template = file.template();
    let chosen = &template.step("route").unwrap().chooses;
    assert_eq!(chosen.iter().map(|step| template.steps[*step].name.as_str()).collect::<Vec<_>>(), ["large", "small"]);
    assert_eq!(before(&file, "end"), ["large", "small"]);
    assert_eq!(left_out, [(6, "steps.route.type".to_owned())]);
}

/// Shows: W13
#[test]
fn a_batch_worker_is_a_step_for_each_cursor() {
    let (file, left_out) = import(
        "name: rows
namespace_name: csv
steps:
  - {name: plan, type: batchable, handler: {callable: plan}}
  - name: rows
    type: batch_worker
    dependencies: [plan]
    handler: {callable: rows, initialization: {column: price}}
    batch_config:
      batch_size: 200
      parallelism: 5
      worker_template: rows
      failure_strategy: continue_on_failure
  - {name: sum, type: deferred_convergence, handler: {callable: sum}, dependencies: [rows]}
",
    );
    let each = work(&file, "rows").each.as_ref().unwrap();
    assert!(matches!(each.items, Items::List(_)));
    assert_eq!((each.parallel, each.tolerate), (5, Tolerate::All));
    assert_eq!(left_out, [(10, "steps.rows.batch_config.batch_size".to_owned())]);
}

/// Shows: W13
#[test]
fn events_and_environments_are_carried_over() {
    let (file, left_out) = import(
        "name: pay
namespace_name: money
metadata: {author: Ada}
steps:
  - name: charge
    handler: {callable: charge}
    timeout_seconds: 60
    publishes_events:
      - {name: paid, condition: success, delivery_mode: durable, schema: {type: object}}
      - {name: unpaid, condition: failure}
      - {name: seen, condition: always, delivery_mode: fast}
  - {name: mail, handler: {callable: mail}, dependencies: [charge]}
environments:
  test:
    steps:
      - name: ALL
        timeout_seconds: 5
        handler: {initialization: {mode: test}}
      - {name: charge, timeout_seconds: 7, retry: {max_attempts: 1}}
",
    );
    let published: Vec<(String, PublishedEnd)> = file
        .template()
        .step("charge")
        .unwrap()
        .publishes
        .iter()
        .map(|event| {
            assert!(matches!(event.delivery, Delivery::Task { queue: None }));
            (event.name.clone(), event.when)
        })
        .collect();
    let expected =
        [("paid", PublishedEnd::Completed), ("unpaid", PublishedEnd::Failed), ("unpaid", PublishedEnd::Dead)];
    assert_eq!(published, expected.map(|(name, when)| (name.to_owned(), when)));
    let test = file.in_environment("test").unwrap();
    let timeout = |step: &str| match &test.step(step).unwrap().action {
        StepAction::Work(work) => work.timeout.unwrap().as_secs(),
        _ => 0,
    };
    assert_eq!((timeout("charge"), timeout("mail")), (7, 5));
    assert!(file.canonical().contains("\"mode\":\"test\""));
    let fields: Vec<&str> = left_out.iter().map(|(_, field)| field.as_str()).collect();
    assert_eq!(fields, ["metadata", "steps.charge.publishes_events.seen.delivery_mode"]);
}

/// Shows: W13
#[test]
fn a_dependency_that_does_not_exist_is_an_error_of_the_new_file() {
    let import =
        TaskerImport::read("a.yaml", "name: a\nsteps: [{name: one, dependencies: [tow]}, {name: two}]").unwrap();
    let errors = TemplateFile::read("a.yaml", &import.yaml).unwrap_err().to_string();
    assert!(errors.contains("did you mean `two`?"), "{errors}");
}

#[test]
fn a_file_that_is_no_yaml_has_the_errors_of_its_places() {
    assert!(TaskerImport::read("a.yaml", "steps: [").unwrap_err().to_string().starts_with("a.yaml:1:"));
}
