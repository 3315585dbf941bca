//! Sources that are expressions, and sources that are none.

use super::super::Expression;
use super::fixture::{all_refused, all_true, parsed};

#[test]
fn blanks_stand_anywhere_between_tokens() {
    all_true(&["1+1==2", " 1 +\n\t1 ==\r\n2 ", "[ 1 , 2 ] . size ( ) == 2", "{ 'a' : 1 } [ 'a' ]==1"]);
}

#[test]
fn what_other_languages_write_is_refused_with_what_is_meant() {
    all_refused(&[
        ("input.a and input.b", "expected an operator or the end, and there is `and`; write `&&`"),
        ("input.a or input.b", "write `||`"),
        ("not input.a", "unknown name `not`"),
        ("input.a = 1", "`=` is no operator; to compare write `==`"),
        ("input.a === 1", "`=` is no operator"),
        ("input.a & input.b", "`&` is no operator; write it twice"),
        ("input.a | input.b", "`|` is no operator; write it twice"),
        ("`a`", "a text stands in single or double quotes"),
        ("$NAME", "`$` has no meaning in an expression; a text stands in quotes"),
        ("1 # b", "`#` has no meaning in an expression"),
        ("“a”", "`“` has no meaning in an expression; a text stands in quotes"),
        ("\u{202e}", "`\\u{202e}` has no meaning"),
    ]);
}

#[test]
fn what_is_not_closed_or_not_there_is_refused() {
    all_refused(&[
        ("(1", "expected `)`, and there is the end"),
        ("[1, 2", "expected `,` or `]`, and there is the end"),
        ("[1, ]", "expected a value, and there is `]`"),
        ("{'a': 1", "expected `,` or `}`, and there is the end"),
        ("{'a' 1}", "expected `:`, and there is `1`"),
        ("size(1", "expected `,` or `)`, and there is the end"),
        ("input[1", "expected `]`, and there is the end"),
        ("true ? 1", "expected `:`, and there is the end"),
        ("1 +", "expected a value, and there is the end"),
        ("* 2", "expected a value, and there is `*`"),
        ("1 2", "expected an operator or the end, and there is `2`"),
        ("in", "expected a value, and there is `in`"),
        ("input.1", "expected a name behind `.`, and there is `1`"),
        ("!", "expected a value, and there is the end"),
    ]);
}

#[test]
fn an_error_has_the_bytes_of_what_is_wrong() {
    for (source, span) in [
        ("input.a + inpt.b", 10..14),
        ("'é' + §", 7..9),
        ("1 2", 2..3),
        ("(1", 2..2),
        ("[1].map(x, y)", 11..12),
        ("'a'.replace('b')", 4..16),
        ("1 + 007", 4..7),
        ("'a\\d'", 2..4),
    ] {
        assert_eq!(Expression::parse(source).unwrap_err().span, span, "{source}");
    }
}

#[test]
fn an_expression_is_shared_between_threads_and_compared_by_its_source() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    let expression = parsed("'a'.matches('b')");
    shared(&expression);
    assert_eq!(expression, expression.clone());
    assert_eq!(expression, parsed("'a'.matches('b')"));
    assert_ne!(expression, parsed("'a'.matches('c')"));
}
