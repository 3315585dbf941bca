//! Functions of texts.

use serde_json::json;

use super::fixture::{Run, all_are, all_fail, all_false, all_refused, all_true};

#[test]
fn size_counts_characters_elements_and_entries() {
    all_are(&[
        ("size('')", json!(0)),
        ("size('é🚀')", json!(2)),
        ("size([1, 2, 3])", json!(3)),
        ("size({'a': 1})", json!(1)),
        ("'abc'.size()", json!(3)),
        ("[1].size()", json!(1)),
    ]);
    all_fail(&[
        ("size(5)", "`size` takes a text, a list or a map, and this is an int"),
        ("size(null)", "this is null"),
    ]);
}

#[test]
fn a_text_is_searched() {
    all_true(&["'order-1'.startsWith('order-')", "'a.pdf'.endsWith('.pdf')", "'abc'.contains('b')", "''.contains('')"]);
    all_false(&["'order'.startsWith('Order')", "'a.pdf'.endsWith('pdf.')", "'abc'.contains('ac')"]);
}

#[test]
fn letters_of_ascii_change_case_and_others_do_not() {
    all_are(&[("'AbÉ'.lowerAscii()", json!("abÉ")), ("'abé'.upperAscii()", json!("ABé"))]);
}

#[test]
fn trim_takes_blanks_from_both_ends() {
    all_are(&[("' \\t a b\\n\\u00a0'.trim()", json!("a b")), ("''.trim()", json!(""))]);
}

#[test]
fn split_and_join_are_inverse() {
    all_are(&[
        ("'a,b,,c'.split(',')", json!(["a", "b", "", "c"])),
        ("''.split(',')", json!([""])),
        ("'aé🚀'.split('')", json!(["a", "é", "🚀"])),
        ("''.split('')", json!([])),
        ("['a', 'b'].join(', ')", json!("a, b")),
        ("['a', 'b'].join()", json!("ab")),
        ("[].join(',')", json!("")),
    ]);
    all_fail(&[("[1].join(',')", "`join` takes a list of texts; make them by x.map(y, string(y))")]);
}

#[test]
fn replace_changes_every_occurrence() {
    all_are(&[
        ("'a-b-c'.replace('-', '')", json!("abc")),
        ("'aaa'.replace('aa', 'b')", json!("ba")),
        ("'ab'.replace('', '.')", json!(".a.b.")),
        ("'ab'.replace('x', 'y')", json!("ab")),
    ]);
}

#[test]
fn a_function_of_texts_takes_nothing_else() {
    all_fail(&[
        ("(5).startsWith('5')", "`startsWith` takes a text, and this is an int"),
        ("null.trim()", "`trim` takes a text, and this is null"),
        ("'a'.contains(1)", "`contains` takes a text, and its argument is an int"),
        ("'a'.join(',')", "`join` takes a list of texts, and this is a text"),
        ("['a'].split(',')", "`split` takes a text, and this is a list"),
    ]);
}

#[test]
fn the_number_of_arguments_is_checked_before_the_run() {
    all_refused(&[
        ("size()", "`size` takes 1 argument, and there are 0"),
        ("get(input, 'a')", "`get` takes 3 arguments, and there are 2"),
        ("'a'.replace('b')", "`replace` takes 2 arguments, and there are 1"),
        ("['a'].join(',', ';')", "`join` takes 0 or 1 arguments, and there are 2"),
        ("'a'.trim(' ')", "`trim` takes 0 arguments, and there are 1"),
    ]);
}

#[test]
fn what_would_make_too_much_text_ends_before_it_is_made() {
    let run = Run::with_input(json!({"s": "x".repeat(100_000)}));
    for source in [
        "input.s.replace('x', input.s)",
        "input.s.split('')",
        "input.s.split('').map(c, input.s).join(',')",
        "input.s.split('x').map(c, input.s)",
    ] {
        assert!(run.error(source).contains("more than 100000 operations"), "{source}");
    }
}
