//! Splitting a source into tokens with their places.

use super::bounds::EXPRESSION_BYTES;
use super::error::{ExpressionError, Parsed};
use super::literal::{Number, read_number, read_text};
use super::shown::Excerpt;
use super::span::Span;

/// The start of an expression in a text.
pub(super) const OPEN: &str = "${{";

/// The end of an expression in a text.
pub(super) const CLOSE: &str = "}}";

/// Signs, the longer ones first.
const SIGNS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")", "[", "]",
    "{", "}",
];

/// The smallest part of a source that has a meaning.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    Number(Number),
    Text(String),
    Sign(&'static str),
    End,
}

/// Returns true if an expression in a text starts here.
pub(super) fn starts_template(rest: &str) -> bool {
    rest.starts_with(OPEN)
}

/// A reader of tokens.
pub(super) struct Lexer<'a> {
    source: &'a str,
    start: usize,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// Starts to read the expression at a byte of a source.
    pub(super) fn new(source: &'a str, start: usize) -> Self {
        Self { source, start, at: start }
    }

    pub(super) fn source(&self) -> &'a str {
        self.source
    }

    /// Reads the next token.
    ///
    /// # Errors
    /// If there is none, or the expression is too long.
    pub(super) fn next(&mut self) -> Parsed<(Token<'a>, Span)> {
        let rest = &self.source[self.at..];
        let blanks = rest.bytes().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
        let start = self.at + blanks;
        let (token, end) = self.read(start)?;
        if token != Token::End && end - self.start > EXPRESSION_BYTES {
            let message =
                format!("the expression is longer than {EXPRESSION_BYTES} bytes; compute parts of it in steps");
            return Err(ExpressionError::new(start..end, message));
        }
        self.at = end;
        Ok((token, Span::new(start, end)))
    }

    fn read(&self, start: usize) -> Parsed<(Token<'a>, usize)> {
        let rest = &self.source[start..];
        let Some(first) = rest.bytes().next() else { return Ok((Token::End, start)) };
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
                Ok((Token::Name(&rest[..length]), start + length))
            }
            b'0'..=b'9' => read_number(self.source, start).map(|(number, end)| (Token::Number(number), end)),
            b'"' | b'\'' => read_text(self.source, start).map(|(text, end)| (Token::Text(text), end)),
            _ => match SIGNS.iter().find(|sign| rest.starts_with(*sign)) {
                Some(sign) => Ok((Token::Sign(sign), start + sign.len())),
                None => Err(unknown(rest, start)),
            },
        }
    }
}

/// Returns the error of a character that starts no token.
fn unknown(rest: &str, start: usize) -> Box<ExpressionError> {
    let character = rest.chars().next().unwrap_or_default();
    let message = match character {
        '$' if starts_template(rest) => {
            return ExpressionError::new(start..start + OPEN.len(), "`${{` cannot stand inside an expression");
        }
        '=' => "`=` is no operator; to compare write `==`".to_owned(),
        '&' | '|' => format!("`{character}` is no operator; write it twice"),
        '`' => "a text stands in single or double quotes".to_owned(),
        _ => {
            let shown = character.to_string();
            format!("`{}` has no meaning in an expression; a text stands in quotes", Excerpt(&shown))
        }
    };
    ExpressionError::new(start..start + character.len_utf8(), message)
}
