//! Names, and the references that a reader of templates checks.

use super::super::{Reference, TextTemplate};
use super::fixture::{all_refused, parsed, refused};

fn names(source: &str) -> Vec<String> {
    parsed(source).names().iter().map(ToString::to_string).collect()
}

#[test]
fn every_use_of_a_root_is_listed_with_its_first_field() {
    let source = "steps.join.result.rows > input.limit && vars.on || run.id == item && index > 0";
    assert_eq!(names(source), ["steps.join.result", "input.limit", "vars.on", "run.id", "item", "index"]);
    assert_eq!(names("[input, input['a'], steps.a]"), ["input", "input", "steps.a"]);
    assert_eq!(names("[1].map(x, x.input + input.a)"), ["input.a"]);
}

#[test]
fn uses_that_are_never_evaluated_are_listed_too() {
    assert_eq!(names("false && steps.a.state == 'completed'"), ["steps.a.state"]);
    assert_eq!(names("has(steps.a.result.rows)"), ["steps.a.result"]);
    assert_eq!(names("[].map(x, steps.a.result[input.n])"), ["steps.a.result", "input.n"]);
}

#[test]
fn a_reference_has_the_bytes_of_its_source() {
    let source = "'é' + steps . join .result.x + input.day";
    let expression = parsed(source);
    let spans: Vec<&str> = expression.names().iter().map(|name| &source[name.span.clone()]).collect();
    assert_eq!(spans, ["steps . join .result", "input.day"]);
    let text = "a ${{ input.a }} b ${{ input.b }}";
    let parsed = TextTemplate::parse(text).unwrap();
    let spans: Vec<&str> = parsed.names().iter().map(|name| &text[name.span.clone()]).collect();
    assert_eq!(spans, ["input.a", "input.b"]);
}

#[test]
fn a_reference_to_a_step_has_its_name() {
    let Reference { step, field, .. } = parsed("steps.mail.error.message").names()[0].clone();
    assert_eq!((step.as_deref(), field.as_deref()), (Some("mail"), Some("error")));
}

#[test]
fn an_unknown_name_is_refused_with_what_was_probably_meant() {
    let error = refused("inptu.a");
    assert_eq!(error, "unknown name `inptu`; did you mean `input`?");
    let error = refused("completed");
    assert!(
        error.contains("there are input, vars, run, steps, item, index; a text stands in quotes: 'completed'"),
        "{error}"
    );
    all_refused(&[
        ("input.order-id == 1", "unknown name `id`; a field with `-` in its name is read by [\"…\"]"),
        ("size > 3", "unknown name `size`; the function is called as size(…)"),
        ("[1].map(row, rwo)", "did you mean `row`?"),
    ]);
}

#[test]
fn a_step_is_named_and_has_known_fields() {
    all_refused(&[
        ("steps", "`steps` needs the name of one step behind it, as in steps.build.result"),
        ("steps['a']", "`steps` needs the name of one step"),
        ("size(steps)", "`steps` needs the name of one step"),
        ("steps.", "expected a name behind `.`"),
        (
            "steps.a.reslt",
            "a step has no field `reslt`; there are `state`, `result`, `error`, `failed`, `count`; did you mean `result`?",
        ),
    ]);
}

#[test]
fn the_run_has_known_fields() {
    all_refused(&[(
        "run.nmae",
        "the run has no field `nmae`; there are `id`, `name`, `key`, `started_at`, `environment`; did you mean `name`?",
    )]);
    assert_eq!(names("run.started_at"), ["run.started_at"]);
}

#[test]
fn an_unknown_function_is_refused_with_the_right_form() {
    all_refused(&[
        ("siez(input)", "unknown function `siez`; did you mean `size`?"),
        ("input.a.startswith('b')", "unknown function `startswith`; did you mean `startsWith`?"),
        ("startsWith('a', 'b')", "`startsWith` stands behind a value, as in x.startsWith(…)"),
        ("all([1], x, true)", "`all` stands behind a value, as in x.all(…)"),
        ("input.a.int()", "`int` stands before its value, as in int(x)"),
        ("now()", "unknown function `now`"),
        ("random()", "unknown function `random`"),
    ]);
}
