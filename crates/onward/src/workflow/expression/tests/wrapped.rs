//! `${{ }}` around a field that is one expression.

use serde_json::json;

use super::super::Expression;
use super::fixture::{Run, all_refused, parsed};

#[test]
fn one_pair_around_all_of_it_is_taken_off() {
    let run = Run::with_input(json!({"n": 5}));
    for source in ["input.n > 3", "${{ input.n > 3 }}", " ${{input.n>3}} \n", "\n  input.n > 3\n"] {
        assert_eq!(run.value(source), json!(true).into(), "{source:?}");
    }
    assert_eq!(run.value("${{ {'a': {'b': {}}}}}"), json!({"a": {"b": {}}}).into());
}

#[test]
fn spans_count_from_the_start_of_the_field() {
    let source = " ${{ input.n > 3 }}";
    assert_eq!(&source[parsed(source).names()[0].span.clone()], "input.n");
    assert_eq!(Expression::parse(" ${{ inpt }}").unwrap_err().span, 5..9);
}

#[test]
fn something_behind_it_is_refused_with_the_whole_condition() {
    let error = Expression::parse("${{ input.a }} && input.b").unwrap_err();
    assert_eq!(error.message, "expected an end after `${{ input.a }}`; write the whole condition without `${{ }}`");
    assert_eq!(error.correction.as_deref(), Some("input.a && input.b"));
    assert_eq!(error.span, 15..25);
    assert!(error.to_string().ends_with("without `${{ }}`: input.a && input.b"), "{error}");
}

#[test]
fn a_pair_within_an_expression_is_refused() {
    let error = Expression::parse("input.a && ${{ input.b }}").unwrap_err();
    assert_eq!(error.to_string(), "`${{` cannot stand inside an expression: input.a && input.b");
    all_refused(&[
        ("'a-${{ input.b }}' == input.a", "`${{` cannot stand inside an expression; join texts by `+`"),
        ("${{ '${{' }}", "`${{` cannot stand inside an expression; join texts by `+`"),
        ("$${{ input.a }}", "`$` has no meaning in an expression"),
    ]);
}

#[test]
fn a_pair_without_its_end_is_refused_at_its_start() {
    let error = Expression::parse("  ${{ input.a").unwrap_err();
    assert_eq!(error.message, "`${{` needs a `}}` behind its expression");
    assert_eq!(error.span, 2..5);
    all_refused(&[
        ("${{ input.a }", "expected an operator or `}}`, and there is `}`"),
        ("${{ input.a } }", "expected an operator or `}}`"),
        ("${{ }}", "expected a value, and there is `}`"),
        ("input.a }}", "expected an operator or the end, and there is `}`"),
        ("", "expected a value, and there is the end"),
    ]);
}
