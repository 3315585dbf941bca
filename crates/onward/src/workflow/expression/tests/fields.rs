//! Fields, elements, `has` and `get`.

use serde_json::json;

use super::super::Root;
use super::fixture::{Run, all_fail, all_refused};

fn run() -> Run {
    let input = json!({
        "address": {"city": "Graz", "post-code": "8010"}, "amount": 12, "none": null, "list": [1, 2], "empty": {},
    });
    Run::with_input(input).root(Root::Run, json!({"id": 12})).root(Root::Item, json!({"from": 0}))
}

#[test]
fn a_field_is_read_by_name_or_by_a_text() {
    let run = run();
    assert_eq!(run.value("input.address.city"), json!("Graz").into());
    assert_eq!(run.value("input['address'][\"post-code\"]"), json!("8010").into());
    assert_eq!(run.value("input['addr' + 'ess'].city"), json!("Graz").into());
    assert_eq!(run.value("run.id"), json!(12).into());
    assert_eq!(run.value("item.from"), json!(0).into());
    assert_eq!(run.value("{'in': 1}.in + {'true': 2}.true"), json!(3).into());
}

#[test]
fn an_element_is_read_by_its_number_from_zero() {
    let run = run();
    for source in ["input.list[1]", "input.list[1u]", "input.list[1.0]", "input['list'][2 - 1]"] {
        assert_eq!(run.value(source), json!(2).into(), "{source}");
    }
    assert_eq!(run.error("input.list[2]"), "no element 2 in input.list; it has 2, counted from 0");
    assert_eq!(run.error("input.list[-1]"), "no element -1 in input.list; it has 2, counted from 0");
    assert_eq!(run.error("input.list[0.5]"), "an index has to be an int, and this is 0.5");
    assert_eq!(run.error("input.list['0']"), "an index has to be an int, and this is the text `0`");
    assert_eq!(run.error("input[0]"), "a key has to be a text, and this is 0");
    assert_eq!(run.error("input.amount[0]"), "input.amount is an int, which has no elements");
}

#[test]
fn a_missing_field_is_named_with_those_there_are() {
    let run = Run::with_input(json!({"address": {"city": "Graz"}, "amount": 1}));
    let error = run.error("input.adress.city");
    assert_eq!(error, "no field `adress` in input; there are `address`, `amount`; did you mean `address`?");
    let error = run.error("input.address.street");
    assert_eq!(error, "no field `street` in input.address; there are `city`");
    assert_eq!(run.error("input['x']"), "no field `x` in input; there are `address`, `amount`");
}

#[test]
fn of_many_fields_some_are_named() {
    let entries: serde_json::Map<_, _> = (0..100).map(|number| (format!("field_{number:02}"), json!(1))).collect();
    let error = Run::with_input(entries.into()).error("input.feld_57");
    assert!(error.contains("there are `field_00`, `field_01`,"), "{error}");
    assert!(error.ends_with("`field_07` and 92 more; did you mean `field_57`?"), "{error}");
}

#[test]
fn an_empty_map_and_what_is_no_map_have_no_field() {
    let run = run();
    assert_eq!(run.error("input.empty.a"), "no field `a` in input.empty, which is empty");
    assert_eq!(run.error("input.none.a"), "input.none is null, which has no field `a`");
    assert_eq!(run.error("input.list.a"), "input.list is a list, which has no field `a`");
}

#[test]
fn the_error_of_a_field_points_at_it() {
    let error = run().evaluate("1 + input.address.town").unwrap_err();
    assert_eq!(error.error().map(|error| error.span.clone()), Some(17..22));
}

#[test]
fn has_returns_whether_a_field_exists() {
    let run = run();
    for source in ["has(input.amount)", "has(input.none)", "has(input.address.city)", "has({'a': 1}.a)"] {
        assert_eq!(run.value(source), true.into(), "{source}");
    }
    assert_eq!(run.value("has(input.adress)"), false.into());
    assert_eq!(run.error("has(input.none.a)"), "input.none is null, which has no fields");
    assert!(run.error("has(input.adress.city)").starts_with("no field `adress` in input"));
}

#[test]
fn has_takes_a_field_and_nothing_else() {
    let cases = ["has(input)", "has('a')", "has(input['a'])", "has(size(input))", "has(steps.a)"];
    all_refused(&cases.map(|source| (source, "`has` takes a field, as in has(input.day)")));
    all_refused(&[("has()", "expected a value"), ("has(input.a, input.b)", "expected `)`")]);
}

#[test]
fn get_returns_the_default_where_there_is_no_entry_or_no_map() {
    let run = run();
    for (source, expected) in [
        ("get(input, 'amount', 0)", json!(12)),
        ("get(input, 'none', 0)", json!(null)),
        ("get(input, 'other', 0)", json!(0)),
        ("get(input.none, 'a', 'x')", json!("x")),
        ("get(get(input, 'other', null), 'a', 'x')", json!("x")),
    ] {
        assert_eq!(run.value(source), expected.into(), "{source}");
    }
    all_fail(&[
        ("get([1], 'a', 0)", "`get` takes a map or null, and this is a list"),
        ("get({}, 1, 0)", "the key of `get` has to be a text, and this is an int"),
    ]);
}
