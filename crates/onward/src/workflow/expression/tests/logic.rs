//! `&& || !` and `? :`.

use serde_json::json;

use super::super::{Budget, Unfinished};
use super::fixture::{Run, all_are, all_fail, all_false, all_true, parsed};

#[test]
fn and_binds_tighter_than_or_and_both_tighter_than_a_choice() {
    all_true(&["true || false && false", "!false && !false", "false || true ? true : false", "!!true"]);
    all_are(&[("false ? 1 : true ? 2 : 3", json!(2)), ("true ? 1 : true ? 2 : 3", json!(1))]);
    all_are(&[("false ? 1 : false ? 2 : 3", json!(3)), ("true ? (false ? 1 : 2) : 3", json!(2))]);
}

#[test]
fn a_side_that_decides_makes_an_error_on_the_other_harmless() {
    all_false(&["false && 1 / 0 == 0", "1 / 0 == 0 && false", "1 / 0 == 0 && true && false", "false && input.x"]);
    all_true(&["true || 1 / 0 == 0", "1 / 0 == 0 || true", "input.x || 1 / 0 == 0 || true"]);
}

#[test]
fn an_error_stays_where_no_side_decides() {
    all_fail(&[
        ("1 / 0 == 0 && true", "division by zero"),
        ("true && 1 / 0 == 0", "division by zero"),
        ("1 / 0 == 0 || false", "division by zero"),
        ("false || 1 / 0 == 0 || input.x", "division by zero"),
    ]);
}

#[test]
fn the_side_that_is_not_chosen_is_not_evaluated() {
    all_are(&[("true ? 1 : 1 / 0", json!(1)), ("false ? 1 / 0 : 2", json!(2))]);
}

#[test]
fn only_a_bool_is_true() {
    all_fail(&[
        ("1 && true", "a side of `&&` has to be a bool, and this is 1"),
        ("'true' || false", "a side of `||` has to be a bool, and this is the text `true`"),
        ("!null", "the operand of `!` has to be a bool, and this is null"),
        ("1 ? 2 : 3", "a condition has to be a bool, and this is 1"),
        ("[] ? 2 : 3", "a condition has to be a bool, and this is a list"),
    ]);
}

#[test]
fn a_side_of_another_type_is_an_error_like_others() {
    all_false(&["1 && false", "false && 'x'"]);
    all_true(&["1 || true", "true || null"]);
}

#[test]
fn a_condition_is_a_bool_and_nothing_else() {
    let run = Run::with_input(json!({"n": 5}));
    let condition = |source: &str| parsed(source).evaluate_condition(&run, &mut Budget::default());
    assert_eq!(condition("input.n > 3"), Ok(true));
    assert_eq!(condition("${{ input.n > 5 }}"), Ok(false));
    for source in ["'text'", "1", "input.n", "null"] {
        let Err(Unfinished::Failed(error)) = condition(source) else { panic!("{source}") };
        assert!(error.message.starts_with("a condition has to be a bool, and this is "), "{error}");
        assert_eq!(error.span, 0..source.len());
    }
}
