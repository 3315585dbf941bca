//! Templates that a program makes.

use std::time::Duration;

use serde_json::json;

use super::{StepBuilder, TemplateBuilder};
use crate::workflow::template::{OnFailure, TemplateFile};

/// Shows: W1
#[test]
fn a_built_template_is_the_one_of_a_file_with_the_same_content() {
    let built = TemplateBuilder::new("shop/order")
        .version("7")
        .input_schema(json!({"type": "object"}))
        .on_failure(OnFailure::Undo)
        .timeout(Duration::from_millis(1500))
        .var("rate", 3)
        .environment("test", json!({"vars": {"rate": 4}}))
        .result("${{ steps.ship.result }}")
        .step("list", StepBuilder::value(json!([1, 2])))
        .step(
            "charge",
            StepBuilder::task("charge")
                .depends_on("list")
                .each("steps.list.result", 2)
                .with(json!({"amount": "${{ item }}"}))
                .undo(StepBuilder::task("refund")),
        )
        .step("ship", StepBuilder::run("ship \"$ID\"").env("ID", "${{ input.id }}").depends_on("charge").attempts(3))
        .step(
            "mail",
            StepBuilder::fail("no").depends_on_failed("ship").condition("vars.rate > 3").continue_on_failure(),
        )
        .build()
        .unwrap();
    let text = "
name: shop/order
version: '7'
input_schema: {type: object}
on_failure: undo
timeout: 1500ms
vars: {rate: 3}
environments: {test: {vars: {rate: 4}}}
result: ${{ steps.ship.result }}
steps:
  list: {value: [1, 2]}
  charge:
    task: charge
    depends_on: [list]
    each: steps.list.result
    parallel: 2
    with: {amount: '${{ item }}'}
    undo: {task: refund}
  ship: {run: 'ship \"$ID\"', env: {ID: '${{ input.id }}'}, depends_on: [charge], retry: 3}
  mail: {fail: 'no', depends_on: [{ship: failed}], if: vars.rate > 3, on_failure: continue}
";
    assert_eq!(built.hash(), TemplateFile::read("order.yaml", text).unwrap().hash());
}

/// Shows: W1
#[test]
fn a_built_template_has_all_errors_of_a_file() {
    let errors = TemplateBuilder::new("order")
        .step("charge", StepBuilder::task("charge").field("retries", 3))
        .step("charge", StepBuilder::task("charge"))
        .step("ship", StepBuilder::task("ship").depends_on("chage"))
        .build()
        .unwrap_err()
        .to_string();
    assert!(errors.contains("charge") && errors.contains("order:"), "{errors}");
    let errors = TemplateBuilder::new("order")
        .step("charge", StepBuilder::task("charge").field("retries", 3))
        .step("ship", StepBuilder::task("ship").depends_on("chage"))
        .build()
        .unwrap_err()
        .to_string();
    assert!(errors.contains("unknown field `retries`") && errors.contains("did you mean `charge`?"), "{errors}");
}
