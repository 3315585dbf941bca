//! Values that are not in memory.

use serde_json::json;

use super::super::{Budget, StepField, TextTemplate, Unfinished, ValueTemplate};
use super::fixture::Run;

fn run() -> Run {
    Run::with_input(json!({"x": 0}))
        .unread("a", StepField::Result)
        .unread("b", StepField::Result)
        .step("a", StepField::State, json!("completed"))
        .step("c", StepField::Result, json!(3))
        .step("c", StepField::State, json!("completed"))
        .step("c", StepField::Error, json!(null))
}

fn needed(value: Result<super::super::Value, Unfinished>) -> Vec<String> {
    match value {
        Err(needs @ Unfinished::Needs(_)) => needs.needed().map(|it| format!("{}.{}", it.step, it.field)).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_that_is_not_read_is_named() {
    assert_eq!(needed(run().evaluate("steps.a.result.rows > 0")), ["a.result"]);
}

#[test]
fn all_values_that_are_surely_needed_are_named_at_once() {
    for source in [
        "steps.a.result + steps.b.result",
        "steps.a.result == steps.b.result",
        "[steps.b.result, 1, steps.a.result]",
        "{'a': steps.a.result, 'b': steps.b.result}",
        "get(steps.a.result, 'x', steps.b.result)",
        "[1, 2].map(x, x == 1 ? steps.a.result : steps.b.result)",
    ] {
        assert_eq!(needed(run().evaluate(source)), ["a.result", "b.result"], "{source}");
    }
}

#[test]
fn a_value_that_is_not_needed_is_not_read() {
    let run = run();
    assert_eq!(run.value("steps.a.state == 'completed' ? 1 : steps.a.result"), json!(1).into());
    assert_eq!(run.value("true || steps.a.result > 1"), json!(true).into());
    assert_eq!(run.value("has(steps.a.result)"), json!(true).into());
}

#[test]
fn a_side_that_decides_makes_a_value_on_the_other_unneeded() {
    let run = run();
    assert_eq!(run.value("steps.a.result && false"), json!(false).into());
    assert_eq!(run.value("steps.a.result || true"), json!(true).into());
    assert_eq!(run.value("[1, 2].all(x, x == 1 ? steps.a.result : false)"), json!(false).into());
    assert_eq!(needed(run.evaluate("steps.a.result && steps.b.result")), ["a.result", "b.result"]);
}

/// With the value, the part before the error may be false, or fail first.
#[test]
fn a_need_goes_before_an_error() {
    let run = run();
    for source in [
        "steps.a.result && 1 / input.x == 0",
        "1 / input.x == 0 && steps.a.result",
        "steps.a.result + 1 / input.x",
        "[steps.a.result, 1 / input.x]",
    ] {
        assert_eq!(needed(run.evaluate(source)), ["a.result"], "{source}");
    }
}

#[test]
fn a_whole_step_needs_all_its_fields() {
    let run = run();
    assert_eq!(needed(run.evaluate("steps.a")), ["a.result"]);
    let whole = json!({"state": "completed", "result": 3, "error": null});
    assert_eq!(run.value("steps.c"), whole.into());
    let source = "[steps.c].filter(s, s.state == 'completed').map(s, s.result)";
    assert_eq!(run.value(source), json!([3]).into());
}

#[test]
fn templates_name_the_needs_of_all_their_expressions() {
    let run = run();
    let text = TextTemplate::parse("${{ steps.a.result }} ${{ steps.b.result }}").unwrap();
    assert_eq!(needed(text.evaluate(&run, &mut Budget::default())), ["a.result", "b.result"]);
    let source = json!({"a": ["${{ steps.b.result }}"], "b": {"c": "${{ steps.a.result }}"}});
    let value = ValueTemplate::parse(&source).unwrap();
    assert_eq!(needed(value.evaluate(&run, &mut Budget::default())), ["a.result", "b.result"]);
}

#[test]
fn what_a_step_does_not_have_is_an_error() {
    let run = run();
    assert_eq!(run.error("steps.c.count"), "no field `count` in steps.c; only a step with `each` has it");
    assert_eq!(run.error("steps.d"), "the step `d` is unknown here");
    assert_eq!(run.error("item"), "`item` has a value only in a step with `each`");
    assert_eq!(run.error("vars.x"), "`vars` has no value here");
    assert_eq!(run.value("has(steps.c.count)"), json!(false).into());
}
