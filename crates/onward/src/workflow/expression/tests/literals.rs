//! Numbers, texts, lists and maps that are written down.

use serde_json::json;

use super::super::Value;
use super::fixture::{all_are, all_fail, all_refused, value};

#[test]
fn a_number_is_an_int_unless_it_has_a_fraction_or_an_exponent() {
    all_are(&[("0", json!(0)), ("12", json!(12)), ("-12", json!(-12)), ("1.5", json!(1.5)), ("2e3", json!(2000.0))]);
    all_are(&[("1.0", json!(1.0)), ("1e-2", json!(0.01)), ("1E+2", json!(100.0)), ("-0.5", json!(-0.5))]);
}

#[test]
fn the_lowest_and_the_highest_int_are_written_down() {
    all_are(&[("-9223372036854775808", json!(i64::MIN)), ("9223372036854775807", json!(i64::MAX))]);
}

#[test]
fn a_number_above_every_int_is_a_uint_as_in_json() {
    assert_eq!(value("18446744073709551615"), Value::Uint(u64::MAX));
    assert_eq!(value("7u"), Value::Uint(7));
}

#[test]
fn a_number_beyond_its_type_is_refused() {
    all_refused(&[
        ("18446744073709551616", "beyond 64 bits"),
        ("-9223372036854775809", "beyond an int"),
        ("1e400", "beyond 64 bits"),
        ("-1u", "a uint is never negative"),
    ]);
}

#[test]
fn a_number_has_one_form() {
    all_refused(&[
        ("007", "does not start with a zero"),
        ("1x", "a number ends before a letter"),
        ("0x1f", "a number ends before a letter"),
        ("1_000", "a number ends before a letter"),
        (".5", "expected a value, and there is `.`"),
        ("1.", "expected a name behind `.`"),
    ]);
}

#[test]
fn a_text_stands_in_single_or_double_quotes_with_the_escapes_of_json() {
    all_are(&[
        (r#""it's""#, json!("it's")),
        (r#"'say "hi"'"#, json!("say \"hi\"")),
        (r#"'a\'b\"c\\d\/e'"#, json!("a'b\"c\\d/e")),
        (r"'\b\f\n\r\t'", json!("\u{8}\u{c}\n\r\t")),
        (r"'\u00e9\ud83d\ude80é🚀'", json!("é🚀é🚀")),
        ("''", json!("")),
    ]);
}

#[test]
fn what_is_no_escape_and_no_end_is_refused() {
    all_refused(&[
        (r"'\d'", r"`\d` is no escape; for a `\` write `\\`"),
        (r"'\u12'", "four hexadecimal digits"),
        (r"'\ud83d'", "four hexadecimal digits"),
        (r"'\ude00'", "four hexadecimal digits"),
        (r"'\u+123'", "four hexadecimal digits"),
        (r"'\", "a `\\` needs a character behind it"),
        ("'open", "the text has no end; it needs another '"),
        ("\"open", "the text has no end; it needs another \""),
        ("'two\nlines'", r"only as \u000a"),
    ]);
}

#[test]
fn null_true_and_false_are_words() {
    all_are(&[("null", json!(null)), ("true", json!(true)), ("false", json!(false))]);
}

#[test]
fn lists_and_maps_are_made() {
    all_are(&[
        ("[]", json!([])),
        ("[1, 'a', [null]]", json!([1, "a", [null]])),
        ("{}", json!({})),
        ("{'b': 1, 'a': {'c': [2.5]}}", json!({"a": {"c": [2.5]}, "b": 1})),
        ("{'a' + 'b': 1}", json!({"ab": 1})),
    ]);
}

#[test]
fn a_key_is_a_text_that_is_there_once() {
    all_fail(&[
        ("{1: 2}", "a key has to be a text, and this is 1"),
        ("{'a': 1, 'a': 2}", "the key the text `a` is there twice"),
    ]);
    all_refused(&[("{a: 1}", "a key is a text; write \"a\"")]);
}
