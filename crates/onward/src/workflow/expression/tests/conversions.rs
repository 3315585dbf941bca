//! `int uint double string json parse_json`.

use serde_json::json;

use super::super::Value;
use super::fixture::{Run, all_are, all_fail, value};

#[test]
fn int_takes_numbers_texts_and_timestamps() {
    all_are(&[
        ("int(5)", json!(5)),
        ("int(5u)", json!(5)),
        ("int(-1.9)", json!(-1)),
        ("int(1.9)", json!(1)),
        ("int('-12')", json!(-12)),
        ("int(timestamp('1970-01-02T00:00:00.9Z'))", json!(86_400)),
    ]);
    all_fail(&[
        ("int('1.5')", "the text `1.5` is not an integer"),
        ("int('+1')", "is not an integer"),
        ("int('')", "is not an integer"),
        ("int('9223372036854775808')", "is beyond an int"),
        ("int(9223372036854775808.0)", "is beyond an int"),
        ("int(-9223372036854775808.0)", "is beyond an int"),
        ("int(18446744073709551615)", "is beyond an int"),
        ("int(true)", "`int` takes a number, a text or a timestamp, and this is a bool"),
        ("int(null)", "and this is null"),
    ]);
}

#[test]
fn uint_takes_numbers_and_texts_from_zero() {
    for source in ["uint(5)", "uint(5u)", "uint(5.9)", "uint('5')"] {
        assert_eq!(value(source), Value::Uint(5), "{source}");
    }
    assert_eq!(value("uint(-0.5)"), Value::Uint(0));
    all_fail(&[
        ("uint(-1)", "-1 is beyond a uint"),
        ("uint(-1.0)", "is beyond a uint"),
        ("uint(18446744073709551616.0)", "is beyond a uint"),
        ("uint('-1')", "is not an integer from 0"),
        ("uint([])", "`uint` takes a number or a text, and this is a list"),
    ]);
}

#[test]
fn double_takes_numbers_and_texts_that_are_finite() {
    all_are(&[("double(5)", json!(5.0)), ("double(5u)", json!(5.0)), ("double('-1.5e3')", json!(-1500.0))]);
    all_fail(&[
        ("double('inf')", "the text `inf` is not a number"),
        ("double('NaN')", "is not a number"),
        ("double('1e400')", "is beyond a double"),
        ("double('1,5')", "is not a number"),
        ("double(false)", "`double` takes a number or a text, and this is a bool"),
    ]);
}

#[test]
fn string_takes_what_has_one_obvious_text() {
    all_are(&[
        ("string('a')", json!("a")),
        ("string(true)", json!("true")),
        ("string(-5)", json!("-5")),
        ("string(18446744073709551615)", json!("18446744073709551615")),
        ("string(timestamp('2026-05-04T10:00:00+02:00'))", json!("2026-05-04T08:00:00Z")),
        ("string(duration('1h30m'))", json!("5400s")),
    ]);
    all_fail(&[
        ("string(null)", "null has no text; json(x) writes it as JSON"),
        ("string([1])", "a list has no text; json(x)"),
        ("string({})", "a map has no text; json(x)"),
    ]);
}

#[test]
fn the_text_of_a_double_is_the_same_for_100_and_100_0() {
    all_are(&[
        ("string(100.0)", json!("100")),
        ("string(0.1)", json!("0.1")),
        ("string(1e300)", json!("1e+300")),
        ("string(-2.50)", json!("-2.5")),
    ]);
}

#[test]
fn json_writes_and_parse_json_reads() {
    all_are(&[
        ("json({'b': [1, 2.0, null], 'a': 'é\"'})", json!(r#"{"a":"é\"","b":[1,2.0,null]}"#)),
        ("json('a')", json!("\"a\"")),
        ("json(null)", json!("null")),
        ("parse_json('{\"a\": [1, 1.0, 18446744073709551615]}')", json!({"a": [1, 1.0, u64::MAX]})),
        ("parse_json(json([1, {'a': null}]))", json!([1, {"a": null}])),
    ]);
    all_fail(&[
        ("parse_json('{')", "the text is not JSON"),
        ("parse_json('')", "the text is not JSON"),
        ("parse_json(1)", "`parse_json` takes a text, and this is an int"),
    ]);
}

#[test]
fn json_that_nests_without_end_is_an_error_and_no_overflow() {
    let run = Run::with_input(json!({"deep": "[".repeat(100_000)}));
    assert!(run.error("parse_json(input.deep)").contains("the text is not JSON"));
}
