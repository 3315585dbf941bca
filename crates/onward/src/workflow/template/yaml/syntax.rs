//! YAML syntax: errors, with a correction if quotes are missing, and the quoting of texts.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use super::super::errors::{Fault, shown};
use super::super::source::{Position, Source, Span};
use super::node::Value;
use super::scalar;

/// The longest line for which a correction is looked for, in bytes.
const LINE_BYTES: usize = 4096;

/// Returns the place and the text of a parser's error.
pub(super) fn fault(source: &Source, error: &ScanError) -> (Span, Fault) {
    let start = source.clamp(position(*error.marker()));
    let fault = Fault::new(format!("this is not YAML: {}", cause(error.info())));
    let fault = match with_quotes(source.line(start.line)) {
        Some(line) => fault.fix("put the value in quotes", line),
        None => fault,
    };
    (Span { start, end: start }, fault)
}

/// The parser's words for common faults, and words that name the remedy.
const CAUSES: [(&str, &str); 13] = [
    ("simple key expect", "a key has no `:` behind it"),
    (
        "mapping values are not allowed",
        "a key cannot begin here; check the indentation, or put a text with `: ` in quotes",
    ),
    ("did not find expected key", "the indentation is not that of a key above"),
    ("did not find expected <document start>", "the indentation is not that of a key above"),
    ("did not find expected '-' indicator", "the indentation is not that of the list above"),
    ("block sequence entries are not allowed", "an item of a list cannot begin here; write it on a line of its own"),
    ("expected ',' or ']'", "a list in brackets has no closing `]`"),
    ("expected ',' or '}'", "a map in braces has no closing `}`"),
    ("misplaced bracket", "a bracket or brace closes what is not open"),
    (
        "found unknown anchor",
        "`*` begins an alias of an anchor that is not there; put a text that begins with it in quotes",
    ),
    ("found unexpected end of stream", "a text in quotes has no closing quote"),
    ("found a tab", "a line is indented with a tab; use spaces"),
    ("tabs disallowed", "a line is indented with a tab; use spaces"),
];

/// Returns the fault that a parser's message means.
fn cause(message: &str) -> String {
    let known = CAUSES.iter().find(|(parser, _)| message.contains(parser));
    known.map_or_else(|| shown(message), |(_, remedy)| (*remedy).to_owned())
}

/// Returns the place of a parser's mark, whose columns count from 0.
pub(super) fn position(marker: saphyr_parser::Marker) -> Position {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Position { line: number(marker.line()).max(1), column: number(marker.col()).saturating_add(1) }
}

/// Returns the line with its value in quotes, if only the quotes make it valid YAML.
fn with_quotes(line: &str) -> Option<String> {
    let line = line.trim().trim_start_matches("- ");
    if line.len() > LINE_BYTES || parses(line) {
        return None;
    }
    let (key, value) = line.split_once(": ")?;
    let value = value.trim();
    let corrected = match value.chars().next()? {
        '{' | '[' => format!("{key}: {}", quote_expressions(value)),
        '\'' | '"' | '|' | '>' => return None,
        _ => format!("{key}: {}", quoted(value)),
    };
    parses(&corrected).then_some(corrected)
}

/// Puts each `${{ … }}` without quotes in quotes.
fn quote_expressions(text: &str) -> String {
    let mut rest = text;
    let mut corrected = String::new();
    while let Some(start) = rest.find("${{") {
        let (before, expression) = rest.split_at(start);
        let end = expression.find("}}").map_or(expression.len(), |end| end + 2);
        let is_quoted = before.ends_with(['\'', '"']);
        let (expression, behind) = expression.split_at(end);
        corrected += before;
        corrected += &if is_quoted { expression.to_owned() } else { quoted(expression) };
        rest = behind;
    }
    corrected + rest
}

fn parses(text: &str) -> bool {
    Parser::new_from_str(text).all(|event| event.is_ok())
}

/// Writes a text in single quotes, or in double quotes if it has line breaks.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains(char::is_control) {
        return serde_json::Value::from(text).to_string();
    }
    format!("'{}'", text.replace('\'', "''"))
}

/// Writes a text as the value of a key: without quotes if it is the same text then.
pub(crate) fn written(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

fn is_plain(text: &str) -> bool {
    let line = format!("x: {text}");
    let scalars = Parser::new_from_str(&line).map_while(Result::ok).filter_map(|(event, _)| match event {
        Event::Scalar(text, ScalarStyle::Plain, 0, None) => Some(text.into_owned()),
        _ => None,
    });
    let is_text = || matches!(scalar::plain(text), Ok(Value::Text(_)));
    parses(&line) && !text.contains('\n') && scalars.eq(["x", text]) && is_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_needs_quotes_is_offered_with_them() {
        assert_eq!(with_quotes("    if: !a || b").as_deref(), Some("if: '!a || b'"));
        assert_eq!(with_quotes("- if: x ? y : z").as_deref(), Some("if: 'x ? y : z'"));
        assert_eq!(with_quotes("with: {day: ${{ input.day }}}").as_deref(), Some("with: {day: '${{ input.day }}'}"));
        assert_eq!(with_quotes("run: @x 'y'").as_deref(), Some("run: '@x ''y'''"));
    }

    #[test]
    fn a_line_that_quotes_do_not_mend_has_no_correction() {
        for line in ["a: b", "a: \"b", "a: [b", "}", "", "a: {b: c"] {
            assert_eq!(with_quotes(line), None, "{line}");
        }
    }

    #[test]
    fn common_faults_have_words_that_help() {
        let cause = |text: &str| {
            let source = Source::new("a.yaml", text);
            let error = Parser::new_from_str(text).find_map(Result::err).unwrap();
            fault(&source, &error).0.start.to_string() + " " + &cause(error.info())
        };
        assert_eq!(cause("a: b\nc\n"), "2:2 a key has no `:` behind it");
        assert_eq!(cause("a: [b\n"), "1:6 a list in brackets has no closing `]`");
        assert_eq!(cause("a:\n\tb: c\n"), "2:2 a line is indented with a tab; use spaces");
        assert_eq!(cause("a:\n  b: c\n d: e\n"), "3:2 the indentation is not that of a key above");
        assert_eq!(cause("a: 'b\n"), "1:4 a text in quotes has no closing quote");
    }

    #[test]
    fn a_text_is_written_with_quotes_where_it_needs_them() {
        let texts = ["a && b", "!paid", "5", "true", "", "a: b", "a # b", "it's", " a", "a\nb", "- a", "{a}", "*a"];
        let read = texts.map(written);
        let expected = [
            "a && b",
            "'!paid'",
            "'5'",
            "'true'",
            "''",
            "'a: b'",
            "'a # b'",
            "it's",
            "' a'",
            "\"a\\nb\"",
            "'- a'",
            "'{a}'",
            "'*a'",
        ];
        assert_eq!(read, expected);
    }
}
