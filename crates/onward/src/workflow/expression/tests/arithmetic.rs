//! `+ - * / %` and the sign.

use serde_json::json;

use super::super::Value;
use super::fixture::{all_are, all_fail, all_true, value};

#[test]
fn ints_stay_ints_and_division_cuts_towards_zero() {
    all_are(&[
        ("1 + 2 * 3 - 4", json!(3)),
        ("(1 + 2) * 3", json!(9)),
        ("10 / 4", json!(2)),
        ("-10 / 4", json!(-2)),
        ("10 % 4", json!(2)),
        ("-10 % 4", json!(-2)),
        ("10 - 3 - 2", json!(5)),
        ("100 / 10 / 5", json!(2)),
    ]);
}

#[test]
fn a_double_makes_all_double() {
    all_are(&[
        ("1 + 2.0", json!(3.0)),
        ("10 / 4.0", json!(2.5)),
        ("2.5 * 2", json!(5.0)),
        ("0.5 - 1", json!(-0.5)),
        ("1 + 1 + 0.5", json!(2.5)),
        ("18446744073709551615 * 1.0", json!(18_446_744_073_709_551_615_f64)),
    ]);
}

#[test]
fn uints_stay_uints() {
    assert_eq!(value("18446744073709551614 + 1u"), Value::Uint(u64::MAX));
    assert_eq!(value("7u / 2u"), Value::Uint(3));
}

#[test]
fn overflow_is_an_error_that_shows_the_sides() {
    all_fail(&[
        ("9223372036854775807 + 1", "9223372036854775807 + 1 is beyond an int (64 bits)"),
        ("-9223372036854775808 - 1", "beyond an int"),
        ("9223372036854775807 * 2", "beyond an int"),
        ("-9223372036854775808 / -1", "beyond an int"),
        ("-9223372036854775808 % -1", "beyond an int"),
        ("-(-9223372036854775808)", "beyond its type"),
        ("1u - 2u", "beyond a uint"),
        ("1e308 * 10", "1e+308 * 10 is beyond a double"),
        ("-1e308 - 1e308", "beyond a double"),
    ]);
}

#[test]
fn division_by_zero_is_an_error_for_every_type() {
    all_fail(&[
        ("1 / 0", "1 / 0: a division by zero"),
        ("1 % 0", "1 % 0: a division by zero"),
        ("1u / 0u", "a division by zero"),
        ("1.0 / 0", "a division by zero"),
        ("0.0 / 0.0", "a division by zero"),
        ("1 / -0.0", "a division by zero"),
    ]);
}

#[test]
fn int_and_uint_are_not_mixed() {
    all_fail(&[("1 + 1u", "`+` does not take an int and a uint; make both one type by int(…) or uint(…)")]);
    all_true(&["1 + int(1u) == 2"]);
}

#[test]
fn a_remainder_needs_integers() {
    all_fail(&[("5.5 % 2", "`%` needs integers")]);
}

#[test]
fn texts_and_lists_are_joined_by_plus() {
    all_are(&[("'a' + 'b' + ''", json!("ab")), ("[1] + [] + ['b']", json!([1, "b"]))]);
}

#[test]
fn other_types_are_not_added() {
    all_fail(&[
        ("'a' + 1", "`+` does not take a text and an int; make a text by string(…)"),
        ("1 + 'a'", "make a text by string(…)"),
        ("{} + {}", "`+` does not take a map and a map"),
        ("null + 1", "`+` does not take null and an int"),
        ("[1] - [1]", "`-` does not take a list and a list"),
        ("true * 2", "`*` does not take a bool and an int"),
        ("-'a'", "`-` does not take a text"),
    ]);
}

#[test]
fn a_sign_binds_tighter_than_a_product() {
    all_are(&[("-2 * -3", json!(6)), ("1 - -1", json!(2)), ("--5", json!(5)), ("-(1 + 2)", json!(-3))]);
}
