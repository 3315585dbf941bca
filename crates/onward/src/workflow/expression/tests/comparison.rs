//! `== != < <= > >= in`.

use super::fixture::{all_fail, all_false, all_refused, all_true};

#[test]
fn numbers_are_equal_by_value() {
    all_true(&["1 == 1.0", "1u == 1", "2.0 == 2u", "0.0 == -0.0", "1 != 1.5", "[1, {'a': 2}] == [1.0, {'a': 2u}]"]);
}

#[test]
fn a_double_is_not_equal_to_an_integer_that_it_rounds() {
    all_true(&[
        "9007199254740993 != 9007199254740992.0",
        "9007199254740993 > 9007199254740992.0",
        "9223372036854775807 < 9223372036854775808.0",
        "18446744073709551615 < 18446744073709551616.0",
        "-9223372036854775808 == -9223372036854775808.0",
        "0 < 1e300 && 0 > -1e300 && 0 > -0.5 && -1 < -0.5",
    ]);
}

#[test]
fn values_of_other_types_are_never_equal() {
    all_false(&["1 == '1'", "null == false", "'' == null", "[] == {}", "0 == false", "timestamp(0) == 0"]);
    all_true(&["1 != '1'", "null == null", "'a' == \"a\"", "true != false"]);
}

#[test]
fn lists_and_maps_are_compared_by_content() {
    all_true(&["[1, 2] == [1, 2]", "{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", "[1] != [1, 1]", "{'a': 1} != {'b': 1}"]);
    all_false(&["[1, 2] == [2, 1]", "{'a': 1} == {'a': 2}", "{'a': 1} == {'a': 1, 'b': 1}"]);
}

#[test]
fn numbers_texts_bools_and_times_have_an_order() {
    all_true(&[
        "1 < 1.5",
        "-1 < 1u",
        "2u >= 2",
        "'a' < 'b' && 'a' < 'aa' && 'Z' < 'a' && 'z' < 'é'",
        "false < true",
        "timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-01T01:00:00+00:30')",
        "duration('90s') > duration('1m') && duration('60s') >= duration('1m')",
    ]);
}

#[test]
fn other_pairs_have_no_order() {
    all_fail(&[
        ("1 < 'a'", "`<` does not compare an int and a text"),
        ("null <= null", "`<=` does not compare null and null"),
        ("[1] > [0]", "`>` does not compare a list and a list"),
    ]);
}

#[test]
fn comparisons_do_not_follow_each_other() {
    all_refused(&[("1 < 2 < 3", "join them by `&&`"), ("1 == 1 == true", "join them by `&&`")]);
}

#[test]
fn in_looks_for_an_equal_element_or_a_key() {
    all_true(&["2 in [1, 2.0]", "'a' in {'a': null}", "null in [null]", "!('x' in [])", "[1] in [[1]]"]);
    all_false(&["'b' in {'a': 'b'}", "1 in {'1': 1}", "'1' in [1]"]);
    all_fail(&[
        ("'a' in 'abc'", "`in` does not search a text; use x.contains('…')"),
        ("1 in null", "`in` needs a list or a map, and this is null"),
    ]);
}
