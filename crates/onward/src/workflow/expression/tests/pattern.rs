//! `matches`.

use serde_json::json;

use super::fixture::{Run, all_fail, all_false, all_refused, all_true};

#[test]
fn a_pattern_is_found_anywhere_unless_it_is_anchored() {
    all_true(&["'abc'.matches('b')", "'abc'.matches('^a.c$')", "''.matches('')", "'Größe'.matches('ö.e')"]);
    all_false(&["'abc'.matches('^b')", "'abc'.matches('B')", "'a\\nb'.matches('a.b')"]);
}

#[test]
fn classes_stand_for_ascii() {
    all_true(&[
        r"'a1_'.matches('^\\w+$')",
        r"'12'.matches('^\\d{2}$')",
        r"' \t'.matches('^\\s+$')",
        r"'é'.matches('^\\W$')",
        r"'é'.matches('^[^\\w\\s]$')",
        r"'a-b'.matches('^[\\w-]+$')",
        r"'a b'.matches('\\bb\\b')",
        r"'ab'.matches('a\\Bb')",
        r"'éa'.matches('\\ba')",
        r"'éa b'.matches('\\b{start}a\\b{end}')",
        r"'a b'.matches('\\<b\\>')",
        r"'a b'.matches('(?x) a \\s b')",
        r"'É'.matches('(?i)^é$')",
        r"'日'.matches('^\\pL$')",
    ]);
    all_false(&[r"'é'.matches('\\w')", r"'٣'.matches('\\d')", r"'a'.matches('^[\\W\\d]$')"]);
}

#[test]
fn a_wrong_pattern_is_refused_before_the_run_where_it_is_written_down() {
    all_refused(&[
        ("'a'.matches('(')", "`(` is not a pattern: unclosed group"),
        ("'a'.matches('a**{')", "is not a pattern"),
        (r"'a'.matches('\\q')", r"`\q` is not a pattern: unrecognized escape sequence"),
        (r"'a'.matches('(a)\\1')", "is not a pattern: backreferences are not supported"),
        ("'a'.matches('(?=a)')", "is not a pattern: look-around"),
    ]);
    all_fail(&[
        ("'a'.matches('(' + '')", "`(` is not a pattern: unclosed group"),
        (r"'a'.matches('\\p{Foo}')", "is not a pattern: Unicode property not found"),
        ("'a'.matches(1)", "`matches` takes a text, and its argument is an int"),
        ("(1).matches('a')", "`matches` takes a text, and this is an int"),
    ]);
}

#[test]
fn a_pattern_is_made_during_the_run_too() {
    let run = Run::with_input(json!({"prefix": "or", "id": "order-1"}));
    assert_eq!(run.value("input.id.matches('^' + input.prefix)"), true.into());
    assert_eq!(run.value("['a1', 'b'].filter(x, x.matches('[0-9]'))"), json!(["a1"]).into());
}

#[test]
fn a_usual_pattern_searches_a_long_text() {
    let run = Run::with_input(json!({"log": "all is well\n".repeat(50_000)}));
    assert_eq!(run.value(r"input.log.matches('error: .*\\d+')"), false.into());
    let run = Run::with_input(json!({"names": vec!["user-17@example.org"; 500]}));
    assert_eq!(run.value(r"input.names.all(x, x.matches('^[\\w.-]+@[\\w-]+(\\.[\\w-]+)+$'))"), true.into());
    assert_eq!(run.value(r"input.names.all(x, x.matches('^.{1,64}$'))"), true.into());
}

/// In these, the automaton has more states than fit into memory, and all are followed at once.
#[test]
fn a_pattern_with_many_states_is_right_on_short_texts_and_ends_on_long_ones() {
    let letters =
        |count: u32| (0..count).map(|at| if at.count_ones() % 2 == 0 { 'a' } else { 'b' }).collect::<String>();
    let run = Run::with_input(json!({"short": letters(1000), "long": letters(200_000)}));
    assert_eq!(run.value("(input.short + 'x').matches('[ab]*a[ab]{15}x')"), true.into());
    assert_eq!(run.value("input.short.matches('[ab]*a[ab]{15}x')"), false.into());
    assert!(run.error("input.long.matches('[ab]*a[ab]{400}x')").contains("more than 100000 operations"));
}

#[test]
fn a_pattern_that_repeats_without_end_is_refused_by_its_size() {
    for bomb in ["(((a{99}){99}){99}){99}", r"(?:\\pL{50}){50}", "(a{500}|b{500}){20}"] {
        all_fail(&[(&format!("'a'.matches('{bomb}')"), "too large; repeat less in it")]);
    }
    let nested = format!("'a'.matches('{}a{}')", "(".repeat(100), ")".repeat(100));
    all_refused(&[(&nested, "is not a pattern")]);
    let long = format!("'a'.matches('{}')", "a".repeat(2000));
    all_refused(&[(&long, "the pattern is longer than 1024 bytes")]);
}
