//! Macros: an expression for each element.

use serde_json::json;

use super::fixture::{Run, all_are, all_fail, all_false, all_refused, all_true};

#[test]
fn all_is_true_unless_an_element_is_against_it() {
    all_true(&["[1, 2].all(x, x > 0)", "[].all(x, false)"]);
    all_false(&["[1, -2].all(x, x > 0)"]);
}

#[test]
fn exists_is_true_if_an_element_is_for_it() {
    all_true(&["[1, -2].exists(x, x < 0)"]);
    all_false(&["[1, 2].exists(x, x < 0)", "[].exists(x, true)"]);
}

#[test]
fn exists_one_wants_exactly_one() {
    all_true(&["[1, 2, 3].exists_one(x, x == 2)"]);
    all_false(&["[2, 2].exists_one(x, x == 2)", "[].exists_one(x, true)"]);
}

#[test]
fn map_and_filter_make_lists() {
    all_are(&[
        ("[1, 2].map(x, x * 10)", json!([10, 20])),
        ("[1, 2, 3].filter(x, x % 2 == 1)", json!([1, 3])),
        ("[3, 4].filter(x, x > 3).map(x, {'n': x})", json!([{"n": 4}])),
        ("[].map(x, 1 / 0)", json!([])),
    ]);
}

#[test]
fn the_elements_of_a_map_are_its_keys() {
    all_are(&[("{'b': 1, 'a': 2}.map(k, k + '!')", json!(["a!", "b!"]))]);
    all_true(&["{'a': 1}.exists(k, k == 'a')"]);
}

#[test]
fn one_element_that_decides_makes_errors_of_others_harmless() {
    all_false(&["[0, 1].all(x, 1 / x > 5)", "[1, 0].all(x, 1 / x > 5)"]);
    all_true(&["[0, 1].exists(x, 1 / x == 1)"]);
    all_fail(&[
        ("[0, 1].all(x, 1 / x == 1)", "division by zero"),
        ("[0, 1].exists(x, 1 / x == 5)", "division by zero"),
        ("[0, 1].exists_one(x, 1 / x == 1)", "division by zero"),
        ("[0, 1].map(x, 1 / x)", "division by zero"),
        ("[0, 1].filter(x, 1 / x == 1)", "division by zero"),
    ]);
}

#[test]
fn a_condition_of_an_element_is_a_bool() {
    all_fail(&[
        ("[1].filter(x, x)", "the condition of an element has to be a bool, and this is 1"),
        ("['a'].all(x, x)", "has to be a bool, and this is the text `a`"),
        ("'abc'.map(c, c)", "`map` takes a list, and this is a text"),
        ("null.all(x, true)", "`all` takes a list, and this is null"),
    ]);
}

#[test]
fn a_macro_in_a_macro_sees_both_variables() {
    all_are(&[
        ("[1, 2].map(x, [10, 20].map(y, x + y))", json!([[11, 21], [12, 22]])),
        ("[1, 2].map(x, [3].map(x, x))", json!([[3], [3]])),
        ("[[1], [2, 3]].map(x, x.map(y, y + x.size()))", json!([[2], [4, 5]])),
    ]);
}

#[test]
fn a_variable_hides_the_item_and_ends_with_its_macro() {
    let run = Run::with_input(json!([1, 2]));
    assert_eq!(run.value("input.map(item, item + 1)"), json!([2, 3]).into());
    all_refused(&[("[1].map(x, x) + [x]", "unknown name `x`")]);
}

#[test]
fn a_variable_has_a_name_of_its_own() {
    all_refused(&[
        ("[1].map(input, 1)", "`input` cannot be the name of a variable"),
        ("[1].map(true, 1)", "`true` cannot be the name of a variable"),
        ("[1].map(1, 1)", "expected the name of a variable, as in map(x, …), and there is `1`"),
        ("[1].map(x)", "expected `,`, and there is `)`"),
        ("[1].map(x, 1, 2)", "expected `)`, and there is `,`"),
    ]);
}
